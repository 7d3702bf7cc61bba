"""The compiler: P4_16 for v1model to BMv2 JSON and P4Info.

Private, as all but `closlab.py` is: it may change from one commit to the next.
"""

from compiler.diagnostics import CompileError, Diagnostic
from compiler.driver import STAGES, Compiled, CompileOptions, compile_program

__all__ = ["STAGES", "CompileError", "CompileOptions", "Compiled", "Diagnostic", "compile_program"]
