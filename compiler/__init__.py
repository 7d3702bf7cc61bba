"""The compiler: P4_16 for v1model to BMv2 JSON and P4Info."""

from compiler.diagnostics import CompileError, Diagnostic
from compiler.driver import STAGES, Compiled, CompileOptions, compile_program

__all__ = ["STAGES", "CompileError", "CompileOptions", "Compiled", "Diagnostic", "compile_program"]
