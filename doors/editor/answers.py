"""What an editor asks of a place, and what it is answered."""

from __future__ import annotations

import asyncio
import functools
import re
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

from doors.editor import hover as hovers
from doors.editor import wire as w
from doors.editor.completion import completions
from doors.editor.kinds import Part
from doors.editor.outline import Entry, outline
from doors.editor.program import Place, Program
from doors.editor.renaming import RefusedError, places, renamed, target
from doors.editor.session import Session
from lab.errors import LabError

_K, _S = lsp.CompletionItemKind, lsp.SymbolKind
_ITEMS = {
    "field": _K.Field, "variable": _K.Variable, "parameter": _K.Variable, "constant": _K.Constant,
    "enum member": _K.EnumMember, "method": _K.Method, "function": _K.Function, "table": _K.Class,
    "action": _K.Function, "keyword": _K.Keyword, "file": _K.File, "macro": _K.Constant,
    "header": _K.Struct, "struct": _K.Struct, "header_union": _K.Struct, "enum": _K.Enum,
    "control": _K.Module, "parser": _K.Module, "package": _K.Module, "extern": _K.Interface,
    "type": _K.TypeParameter, "type parameter": _K.TypeParameter, "instance": _K.Variable,
}  # fmt: skip
_SYMBOLS = {
    "field": _S.Field, "variable": _S.Variable, "constant": _S.Constant, "table": _S.Class,
    "enum member": _S.EnumMember, "function": _S.Function, "action": _S.Function,
    "state": _S.Event, "header": _S.Struct, "struct": _S.Struct, "header_union": _S.Struct,
    "enum": _S.Enum, "control": _S.Module, "parser": _S.Module, "package": _S.Package,
    "extern": _S.Interface, "type": _S.TypeParameter, "error": _S.EnumMember,
    "match_kind": _S.EnumMember,
}  # fmt: skip


Handler = Callable[[Session, Any], Awaitable[Any]]


def answering(handler: Handler) -> Handler:
    """What is refused is said by the protocol's error, and a defect of ours without its insides."""

    @functools.wraps(handler)
    async def answered(session: Session, params: Any) -> Any:
        try:
            return await handler(session, params)
        except LabError as error:
            text = " ".join(filter(None, (f"{error.message}.", error.cure)))
            raise JsonRpcException(text, code=w.REQUEST_FAILED) from None
        except (asyncio.CancelledError, JsonRpcException):
            raise
        except Exception as error:
            traceback.print_exc()
            what = f"it failed, a defect of closlab: {type(error).__name__}"
            raise JsonRpcException(what, code=-32603) from None

    return answered


async def hover(session: Session, params: lsp.HoverParams) -> lsp.Hover | None:
    """How a declaration reads."""
    word = await session.word(params, now=False)
    text = None if word.at is None else hovers.hover(word.program, word.at)
    if text is None and word.macro is not None:
        text = f"```p4\n#define {word.macro}{word.program.macros[word.macro]}\n```\nmacro"
    return None if text is None else lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text))


async def definition(session: Session, params: lsp.DefinitionParams) -> list[lsp.Location]:
    """Where a name is declared; of an include, the file."""
    word = await session.word(params, now=False)
    program = word.program
    included = session.desk.named_in(word.path, program.line(word.path, word.line))
    if included:
        return [session.location(Place(included[0], 0, 0, 0))]
    if word.declaration is not None:
        return [session.location(session.now(program, program.place(word.declaration)))]
    if word.macro is None:
        return []
    defined = re.compile(rf"\s*#\s*define\s+({re.escape(word.macro)})\b")
    return [
        session.location(session.now(program, Place(file, number, match.start(1), len(match[1]))))
        for file in sorted(program.files)
        for number, text in enumerate(program.lines_of(file))
        if (match := defined.match(text))
    ]


async def references(session: Session, params: lsp.ReferenceParams) -> list[lsp.Location]:
    """All places of a name, in every program that has it."""
    word = await session.word(params)
    if word.declaration is None:
        return []
    where = word.program.place(word.declaration)
    name = word.program.tokens.texts[word.declaration]
    others = await session.desk.programs(session.desk.programs_of(where.file))
    read = {each.root: each for each in (*others, word.program)}
    wanted = params.context.include_declaration
    found = {
        session.now(program, place)
        for program in read.values()
        for place in places([program], where, name)
        if wanted or place != where
    }
    in_order = sorted(found, key=lambda each: (each.file, each.line, each.column))
    return [session.location(place) for place in in_order]


async def highlight(
    session: Session, params: lsp.DocumentHighlightParams
) -> list[lsp.DocumentHighlight]:
    """Those of the same file."""
    word = await session.word(params)
    if word.declaration is None:
        return []
    where = word.program.place(word.declaration)
    found = places([word.program], where, word.program.tokens.texts[word.declaration])
    own = [session.now(word.program, place) for place in found if place.file == word.path]
    return [lsp.DocumentHighlight(session.range(place)) for place in own]


async def prepare(
    session: Session, params: lsp.PrepareRenameParams
) -> lsp.PrepareRenamePlaceholder:
    """What a rename would change, if it may."""
    word = await session.word(params)
    declaration = target(word.program, word.at)
    assert word.at is not None
    name = word.program.tokens.texts[declaration]
    return lsp.PrepareRenamePlaceholder(session.range(word.program.place(word.at)), name)


async def rename(session: Session, params: lsp.RenameParams) -> lsp.WorkspaceEdit:
    """The places to change, or what is against it."""
    word = await session.word(params)
    declaration = target(word.program, word.at)
    where, name = word.program.place(declaration), word.program.tokens.texts[declaration]
    desk = session.desk
    read = await desk.programs(desk.programs_of(where.file))
    found = await desk.work(renamed, read, where, name, params.new_name, desk.variant, desk.read)
    if not found:
        raise RefusedError(f"'{name}' was changed meanwhile", "Ask again.")
    edits: dict[str, list[lsp.TextEdit]] = {}
    for place in found:
        own = edits.setdefault(session.uri(place.file), [])
        own.append(lsp.TextEdit(session.range(place), params.new_name))
    return lsp.WorkspaceEdit(changes=edits)


async def complete(session: Session, params: lsp.CompletionParams) -> lsp.CompletionList:
    """How a word may go on."""
    desk, path = session.desk, session.path(params.text_document.uri)
    root = desk.programs_of(path)[0]
    program = desk.latest(root) or await desk.program(root)
    line = params.position.line
    column = session.column(path, line, params.position.character)
    lines = session.lines(path)
    found: dict[str, Part] = {}
    for each in (program, desk.sound(root)):
        if each is not None and (each is program or not program.is_sound):
            for part in completions(each, path, lines, line, column):
                found.setdefault(part.name, part)
    items = [
        lsp.CompletionItem(p.name, kind=_ITEMS.get(p.kind, _K.Text), detail=p.detail or p.kind)
        for p in found.values()
    ]
    return lsp.CompletionList(is_incomplete=False, items=items)


async def symbols(session: Session, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
    """What a file declares."""
    path = session.path(params.text_document.uri)
    program = await session.desk.recent(session.desk.programs_of(path)[0])
    return [_symbol(session, program, entry) for entry in outline(program, path)]


def _symbol(session: Session, program: Program, entry: Entry) -> lsp.DocumentSymbol:
    place = session.now(program, entry.place)
    end = session.now(program, entry.end)
    return lsp.DocumentSymbol(
        name=entry.name,
        kind=_SYMBOLS.get(entry.kind, _S.Variable),
        range=session.range(place, end if end.line >= place.line else place),
        selection_range=session.range(place),
        children=[_symbol(session, program, each) for each in entry.inside],
        detail=entry.kind,
    )
