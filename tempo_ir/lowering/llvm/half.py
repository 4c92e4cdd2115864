"""
Conversions of f16 for processors without instructions for them (x86 before F16C): LLVM calls functions for these that
no library of a process need have, by the names that compilers agree on.

Both are by integers, as F. Giesen has them (half-to-float and float-to-half, 2012): subnormal numbers by one addition
or subtraction of floats, which rounds, the others by moving the bits, a half that is exactly between two to the even.
"""

from __future__ import annotations

from tempo_ir.lowering.llvm.target import SSE, Target

_FUNCTIONS = """
define weak float @__extendhfsf2(half %x) {
  %bits16 = bitcast half %x to i16
  %bits = zext i16 %bits16 to i32
  %sign16 = and i32 %bits, 32768
  %sign = shl i32 %sign16, 16
  %size = and i32 %bits, 32767
  %moved = shl i32 %size, 13
  %rebased = add i32 %moved, 939524096
  %is.special = icmp uge i32 %size, 31744
  %again = add i32 %rebased, 939524096
  %normal = select i1 %is.special, i32 %again, i32 %rebased
  %above = add i32 %moved, 947912704
  %above.float = bitcast i32 %above to float
  %small.float = fsub float %above.float, 0x3F10000000000000
  %small = bitcast float %small.float to i32
  %is.small = icmp ult i32 %size, 1024
  %number = select i1 %is.small, i32 %small, i32 %normal
  %signed = or i32 %number, %sign
  %result = bitcast i32 %signed to float
  ret float %result
}

define weak half @__truncsfhf2(float %x) {
  %bits = bitcast float %x to i32
  %sign = and i32 %bits, -2147483648
  %size = xor i32 %bits, %sign
  %is.nan = icmp ugt i32 %size, 2139095040
  %special = select i1 %is.nan, i32 32256, i32 31744
  %size.float = bitcast i32 %size to float
  %shifted = fadd float %size.float, 5.0e-1
  %shifted.bits = bitcast float %shifted to i32
  %small = sub i32 %shifted.bits, 1056964608
  %moved = lshr i32 %size, 13
  %odd = and i32 %moved, 1
  %rebased = add i32 %size, -939520001
  %rounded = add i32 %rebased, %odd
  %normal = lshr i32 %rounded, 13
  %is.small = icmp ult i32 %size, 947912704
  %finite = select i1 %is.small, i32 %small, i32 %normal
  %is.special = icmp uge i32 %size, 1199570944
  %number = select i1 %is.special, i32 %special, i32 %finite
  %sign16 = lshr i32 %sign, 16
  %signed = or i32 %number, %sign16
  %bits16 = trunc i32 %signed to i16
  %result = bitcast i16 %bits16 to half
  ret half %result
}
"""


def half_functions(text: str, target: Target) -> tuple[str, ...]:
    """The functions that a module of this text may call where it is for a processor that may lack the instructions."""
    return (_FUNCTIONS,) if target.lanes == SSE.lanes and "half" in text else ()
