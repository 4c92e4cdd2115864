// What is printed of the IR between passes, on standard error.
// RUN: tempo-opt %s -p cse,dce,dce --print-ir-after 2>&1 | filecheck %s --check-prefix=ALL
// RUN: tempo-opt %s -p cse,dce,dce --print-ir-after-all 2>&1 | filecheck %s --check-prefix=ALL
// RUN: tempo-opt %s -p cse,dce,dce --print-ir-after=cse 2>&1 | filecheck %s --check-prefix=ONE
// RUN: tempo-opt %s -p cse,dce,dce --mlir-print-ir-before=dce 2>&1 | filecheck %s --check-prefix=BEFORE
// RUN: tempo-opt %s -p cse,dce,dce --print-ir-after-change 2>&1 | filecheck %s --check-prefix=CHANGE
// RUN: tempo-opt %s -p cse --print-ir-after --print-op-generic 2>&1 | filecheck %s --check-prefix=GENERIC

// ALL:       {{^}}// -----// IR Dump After cse //----- //
// ALL-NEXT:  builtin.module {
// ALL:       {{^}}// -----// IR Dump After dce //----- //
// ALL:       {{^}}// -----// IR Dump After dce //----- //
// ALL-NOT:   IR Dump

// ONE:       {{^}}// -----// IR Dump After cse //----- //
// ONE:       %[[UNUSED:.*]] = arith.addi
// ONE-NOT:   IR Dump

// BEFORE:       {{^}}// -----// IR Dump Before dce //----- //
// BEFORE:       {{^}}// -----// IR Dump Before dce //----- //
// BEFORE-NOT:   IR Dump

// CHANGE:       {{^}}// -----// IR Dump After cse //----- //
// CHANGE:       {{^}}// -----// IR Dump After dce //----- //
// CHANGE-NOT:   IR Dump

// GENERIC:      IR Dump After cse
// GENERIC-NEXT: "builtin.module"() ({
// GENERIC:      "builtin.module"() ({

func.func @twice(%a: i32) -> i32 {
  %b = arith.addi %a, %a : i32
  %c = arith.addi %a, %a : i32
  %d = arith.muli %b, %c : i32
  func.return %a : i32
}
