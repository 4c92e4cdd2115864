// RUN: tempo-opt %s --split-input-file -p tile-forward-stores | filecheck %s

// What was stored is not loaded; a store to rows that are proved to be others lies in between.

// CHECK-LABEL: tile.kernel @stored(
// CHECK:         %y = tile.exp
// CHECK-NEXT:    tile.store %y
// CHECK-NOT:     tile.load
// CHECK:         %z = tile.add %y, %y
tile.kernel @stored(%x: !tile.ptr<f32>, %n: index) grid [4] {
  %zero = tile.const 0 : index -> index
  %row = tile.const 64 : index -> index
  %below = tile.add %n, %row : (index, index) -> index
  %here = tile.view %x offset %n [] : !tile.ptr<f32> -> !tile.view<64xf32, [1]>
  %there = tile.view %x offset %below [] : !tile.ptr<f32> -> !tile.view<64xf32, [1]>
  %a = tile.load %here[%zero] block [64] : !tile.view<64xf32, [1]> -> !tile.tile<64xf32>
  %y = tile.exp %a : (!tile.tile<64xf32>) -> !tile.tile<64xf32>
  tile.store %y, %here[%zero] block [64] : !tile.tile<64xf32>, !tile.view<64xf32, [1]>
  tile.store %a, %there[%zero] block [64] : !tile.tile<64xf32>, !tile.view<64xf32, [1]>
  %b = tile.load %here[%zero] block [64] : !tile.view<64xf32, [1]> -> !tile.tile<64xf32>
  %z = tile.add %b, %y : (!tile.tile<64xf32>, !tile.tile<64xf32>) -> !tile.tile<64xf32>
  tile.store %z, %there[%zero] block [64] : !tile.tile<64xf32>, !tile.view<64xf32, [1]>
}

// -----

// Lanes outside of the view are what the load says.

// CHECK-LABEL: tile.kernel @masked(
// CHECK:         tile.store %y
// CHECK:         %[[INSIDE:.*]] = tile.in_range %start below %n : !tile.tile<64xi1>
// CHECK:         %[[OTHER:.*]] = tile.const 1.000000e+00 : f32 -> f32
// CHECK-NEXT:    %{{.*}} = tile.select %[[INSIDE]], %y, %[[OTHER]]
// CHECK-NOT:     tile.load
tile.kernel @masked(%x: !tile.ptr<f32>, %out: !tile.ptr<f32>, %n: index) grid [?] {
  %program = tile.program_id 0
  %width = tile.const 64 : index -> index
  %start = tile.mul %program, %width : (index, index) -> index
  %view = tile.view %x [%n] : !tile.ptr<f32> -> !tile.view<?xf32, [1]>
  %a = tile.load %view[%start] block [64] : !tile.view<?xf32, [1]> -> !tile.tile<64xf32>
  %y = tile.exp %a : (!tile.tile<64xf32>) -> !tile.tile<64xf32>
  tile.store %y, %view[%start] block [64] : !tile.tile<64xf32>, !tile.view<?xf32, [1]>
  %b = tile.load %view[%start] block [64] other 1.0 : f32 : !tile.view<?xf32, [1]> -> !tile.tile<64xf32>
  %outs = tile.view %out [] : !tile.ptr<f32> -> !tile.view<6400xf32, [1]>
  tile.store %b, %outs[%start] block [64] : !tile.tile<64xf32>, !tile.view<6400xf32, [1]>
}

// -----

// Row t of h is read, row t + 1 written: a loop carries it. The weights are read once. If there is no iteration, there
// need be no rows.

// CHECK-LABEL: tile.kernel @recurrence(
// CHECK:         %[[RUNS:.*]] = tile.lt %zero, %T : (index, index) -> i1
// CHECK-NEXT:    tile.if %[[RUNS]] {
// CHECK:           %s = tile.load
// CHECK:           %w_1 = tile.load
// CHECK-NEXT:      %{{.*}} = tile.for %t = %zero to %T step 1 init(%s_1 = %s) : !tile.tile<16x16xf32> {
// CHECK-NOT:         tile.load
// CHECK:             %g = tile.dot %s_1, %w_1
// CHECK:             tile.store %g
// CHECK-NEXT:        tile.yield %g
tile.kernel @recurrence(%h: !tile.ptr<f32>, %w: !tile.ptr<f32>, %T: index) grid [8] {
  %program = tile.program_id 0
  %zero = tile.const 0 : index -> index
  %block = tile.const 16 : index -> index
  %row = tile.mul %program, %block : (index, index) -> index
  %size = tile.const 2048 : index -> index
  tile.for %t = %zero to %T step 1 {
    %here = tile.mul %t, %size : (index, index) -> index
    %before = tile.view %h offset %here [] : !tile.ptr<f32> -> !tile.view<128x16xf32, [16, 1]>
    %s = tile.load %before[%row, %zero] block [16, 16] : !tile.view<128x16xf32, [16, 1]> -> !tile.tile<16x16xf32>
    %weights = tile.view %w [] : !tile.ptr<f32> -> !tile.view<16x16xf32, [16, 1]>
    %w_1 = tile.load %weights[%zero, %zero] block [16, 16] : !tile.view<16x16xf32, [16, 1]> -> !tile.tile<16x16xf32>
    %none = tile.const 0.0 : f32 -> !tile.tile<16x16xf32>
    %g = tile.dot %s, %w_1, %none : !tile.tile<16x16xf32>, !tile.tile<16x16xf32>, !tile.tile<16x16xf32> -> !tile.tile<16x16xf32>
    %there = tile.add %here, %size : (index, index) -> index
    %after = tile.view %h offset %there [] : !tile.ptr<f32> -> !tile.view<128x16xf32, [16, 1]>
    tile.store %g, %after[%row, %zero] block [16, 16] : !tile.tile<16x16xf32>, !tile.view<128x16xf32, [16, 1]>
  }
}

// -----

// A ring of two slots, of which an iteration reads one and writes the other, but for the first: what stands for the slot
// then is not asked for. The sum behind the branch is one or the other.

// CHECK-LABEL: tile.kernel @ring(
// CHECK:           %[[NONE:.*]] = tile.const 0.000000e+00 : f32 -> !tile.tile<8xf32>
// CHECK-NEXT:      %y = tile.load
// CHECK-NEXT:      %{{.*}} = tile.for %t = %zero to %T step 1 init(%[[BEFORE:.*]] = %[[NONE]], %[[SUM:.*]] = %y)
// CHECK:             %later = tile.ne %t, %zero
// CHECK-NEXT:        %more = tile.add %[[BEFORE]], %[[SUM]]
// CHECK-NEXT:        %more_1 = tile.select %later, %more, %[[SUM]]
// CHECK-NEXT:        tile.if %later {
// CHECK-NEXT:          tile.store %more
// CHECK-NEXT:        }
// CHECK-NOT:         tile.load
// CHECK:             %r = tile.exp %more_1
// CHECK:             tile.yield %r, %more_1
tile.kernel @ring(%h: !tile.ptr<f32>, %sum: !tile.ptr<f32>, %T: index) grid [] {
  %zero = tile.const 0 : index -> index
  %one = tile.const 1 : index -> index
  %two = tile.const 2 : index -> index
  %size = tile.const 8 : index -> index
  %sums = tile.view %sum [] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  tile.for %t = %zero to %T step 1 {
    %later = tile.ne %t, %zero : (index, index) -> i1
    tile.if %later {
      %last = tile.sub %t, %one : (index, index) -> index
      %last_slot = tile.mod %last, %two : (index, index) -> index
      %last_offset = tile.mul %last_slot, %size : (index, index) -> index
      %last_view = tile.view %h offset %last_offset [] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
      %before = tile.load %last_view[%zero] block [8] : !tile.view<8xf32, [1]> -> !tile.tile<8xf32>
      %total = tile.load %sums[%zero] block [8] : !tile.view<8xf32, [1]> -> !tile.tile<8xf32>
      %more = tile.add %before, %total : (!tile.tile<8xf32>, !tile.tile<8xf32>) -> !tile.tile<8xf32>
      tile.store %more, %sums[%zero] block [8] : !tile.tile<8xf32>, !tile.view<8xf32, [1]>
    }
    %y = tile.load %sums[%zero] block [8] : !tile.view<8xf32, [1]> -> !tile.tile<8xf32>
    %r = tile.exp %y : (!tile.tile<8xf32>) -> !tile.tile<8xf32>
    %slot = tile.mod %t, %two : (index, index) -> index
    %offset = tile.mul %slot, %size : (index, index) -> index
    %view = tile.view %h offset %offset [] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
    tile.store %r, %view[%zero] block [8] : !tile.tile<8xf32>, !tile.view<8xf32, [1]>
  }
}

// -----

// A buffer of one launch that is only written goes.

// CHECK-LABEL: loop.program @buffers
// CHECK-NOT:     loop.alloc
// CHECK:         loop.launch @twice(%x, %y)
// CHECK:         tile.kernel @twice(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>)
loop.program @buffers {
  %x = loop.input "x" : !loop.buffer<8xf32>
  %y = loop.output "y" : !loop.buffer<8xf32>
  %state = loop.alloc : !loop.buffer<8xf32>
  loop.launch @twice(%x, %state, %y)
  loop.free %state
}
tile.kernel @twice(%x: !tile.ptr<f32>, %state: !tile.ptr<f32>, %y: !tile.ptr<f32>) grid [] {
  %zero = tile.const 0 : index -> index
  %xs = tile.view %x [] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  %states = tile.view %state [] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  %ys = tile.view %y [] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  %a = tile.load %xs[%zero] block [8] : !tile.view<8xf32, [1]> -> !tile.tile<8xf32>
  tile.store %a, %states[%zero] block [8] : !tile.tile<8xf32>, !tile.view<8xf32, [1]>
  %b = tile.load %states[%zero] block [8] : !tile.view<8xf32, [1]> -> !tile.tile<8xf32>
  %c = tile.add %a, %b : (!tile.tile<8xf32>, !tile.tile<8xf32>) -> !tile.tile<8xf32>
  tile.store %c, %ys[%zero] block [8] : !tile.tile<8xf32>, !tile.view<8xf32, [1]>
}

// -----

// The last step stores no row for the next one, of which there is none: the launch passed T - 1. What the branch loads is
// loaded behind it too. No store to the ring is read then.

// CHECK-LABEL: loop.program @last_step
// CHECK:         loop.launch @last_step_over_t(%h, %y)[T]
// CHECK:         %first = tile.load
// CHECK:         tile.for %t = %zero to %T step 1 init(%first_1 = %first) : !tile.tile<8xf32> {
// CHECK:           %s = tile.exp %first_1
// CHECK-NOT:       tile.load
// CHECK:           tile.store %s, %ys
// CHECK-NEXT:      tile.yield %s
loop.program @last_step dims(t: T) {
  %y = loop.output "y" : !loop.buffer<(t: full) 8xf32>
  %h = loop.alloc : !loop.buffer<(t: ring 2) 8xf32>
  loop.if 0 < T {
    loop.launch @begin(%h)
    loop.launch @last_step_over_t(%h, %y)[T, T - 1]
  }
}
tile.kernel @begin(%h: !tile.ptr<f32>) grid [] {
  %zero = tile.const 0 : index -> index
  %view = tile.view %h [] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  %one = tile.const 1.0 : f32 -> !tile.tile<8xf32>
  tile.store %one, %view[%zero] block [8] : !tile.tile<8xf32>, !tile.view<8xf32, [1]>
}
tile.kernel @last_step_over_t(%h: !tile.ptr<f32>, %y: !tile.ptr<f32>, %T: index, %last: index) grid [] {
  %zero = tile.const 0 : index -> index
  %one = tile.const 1 : index -> index
  %two = tile.const 2 : index -> index
  %size = tile.const 8 : index -> index
  tile.for %t = %zero to %T step 1 {
    %slot = tile.mod %t, %two : (index, index) -> index
    %offset = tile.mul %slot, %size : (index, index) -> index
    %view = tile.view %h offset %offset [] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
    %goes_on = tile.lt %t, %last : (index, index) -> i1
    tile.if %goes_on {
      %next = tile.add %t, %one : (index, index) -> index
      %next_slot = tile.mod %next, %two : (index, index) -> index
      %next_offset = tile.mul %next_slot, %size : (index, index) -> index
      %next_view = tile.view %h offset %next_offset [] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
      %first = tile.load %view[%zero] block [8] : !tile.view<8xf32, [1]> -> !tile.tile<8xf32>
      %s = tile.exp %first : (!tile.tile<8xf32>) -> !tile.tile<8xf32>
      tile.store %s, %next_view[%zero] block [8] : !tile.tile<8xf32>, !tile.view<8xf32, [1]>
    }
    %again = tile.load %view[%zero] block [8] : !tile.view<8xf32, [1]> -> !tile.tile<8xf32>
    %r = tile.exp %again : (!tile.tile<8xf32>) -> !tile.tile<8xf32>
    %rows = tile.mul %t, %size : (index, index) -> index
    %ys = tile.view %y offset %rows [] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
    tile.store %r, %ys[%zero] block [8] : !tile.tile<8xf32>, !tile.view<8xf32, [1]>
  }
}

// -----

// The first iteration does nothing.

// CHECK-LABEL: tile.kernel @begins_later(
// CHECK:         %[[BEGIN:.*]] = tile.add %zero, %{{.*}}
// CHECK:         %{{.*}} = tile.for %t = %[[BEGIN]] to %T step 1 init(
// CHECK-NOT:       tile.if
// CHECK-NOT:       tile.load
tile.kernel @begins_later(%h: !tile.ptr<f32>, %T: index) grid [] {
  %zero = tile.const 0 : index -> index
  %one = tile.const 1 : index -> index
  %size = tile.const 8 : index -> index
  tile.for %t = %zero to %T step 1 {
    %later = tile.ge %t, %one : (index, index) -> i1
    tile.if %later {
      %last = tile.sub %t, %one : (index, index) -> index
      %here = tile.mul %last, %size : (index, index) -> index
      %there = tile.mul %t, %size : (index, index) -> index
      %before = tile.view %h offset %here [] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
      %after = tile.view %h offset %there [] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
      %a = tile.load %before[%zero] block [8] : !tile.view<8xf32, [1]> -> !tile.tile<8xf32>
      %b = tile.exp %a : (!tile.tile<8xf32>) -> !tile.tile<8xf32>
      tile.store %b, %after[%zero] block [8] : !tile.tile<8xf32>, !tile.view<8xf32, [1]>
    }
  }
}

// -----

// Two blocks of columns that a step makes one after the other, and reads one by one: they are written out.

// CHECK-LABEL: tile.kernel @blocks(
// CHECK:         tile.for %t = %zero to %T step 1 {
// CHECK-NOT:       tile.for
// CHECK:           %a = tile.exp
// CHECK:           %a_1 = tile.exp
// CHECK:           %sum = tile.add %a, %a_1
tile.kernel @blocks(%x: !tile.ptr<f32>, %gates: !tile.ptr<f32>, %y: !tile.ptr<f32>, %T: index) grid [] {
  %zero = tile.const 0 : index -> index
  %eight = tile.const 8 : index -> index
  %sixteen = tile.const 16 : index -> index
  %view = tile.view %gates [] : !tile.ptr<f32> -> !tile.view<16xf32, [1]>
  tile.for %t = %zero to %T step 1 {
    %offset = tile.mul %t, %sixteen : (index, index) -> index
    %xs = tile.view %x offset %offset [] : !tile.ptr<f32> -> !tile.view<16xf32, [1]>
    tile.for %n = %zero to %sixteen step 8 {
      %block = tile.load %xs[%n] block [8] : !tile.view<16xf32, [1]> -> !tile.tile<8xf32>
      %a = tile.exp %block : (!tile.tile<8xf32>) -> !tile.tile<8xf32>
      tile.store %a, %view[%n] block [8] : !tile.tile<8xf32>, !tile.view<16xf32, [1]>
    }
    %first = tile.load %view[%zero] block [8] : !tile.view<16xf32, [1]> -> !tile.tile<8xf32>
    %second = tile.load %view[%eight] block [8] : !tile.view<16xf32, [1]> -> !tile.tile<8xf32>
    %sum = tile.add %first, %second : (!tile.tile<8xf32>, !tile.tile<8xf32>) -> !tile.tile<8xf32>
    %ys = tile.view %y offset %offset [] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
    tile.store %sum, %ys[%zero] block [8] : !tile.tile<8xf32>, !tile.view<8xf32, [1]>
  }
}

// -----

// A table is stored column by column and read as a whole, or the other way round: it is put together, or taken apart.

// CHECK-LABEL: tile.kernel @columns(
// CHECK:         tile.store
// CHECK-NOT:     tile.load
// CHECK:         %{{.*}} = tile.select %{{.*}} : (!tile.tile<1x2xi1>, !tile.tile<16x1xf32>, !tile.tile<16x1xf32>) -> !tile.tile<16x2xf32>
// CHECK-NOT:     tile.load
// CHECK:         tile.reduce sum %{{.*}} axis 1 : !tile.tile<16x2xf32> -> !tile.tile<16xf32>
tile.kernel @columns(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %a: f32, %b: f32) grid [] {
  %zero = tile.const 0 : index -> index
  %one = tile.const 1 : index -> index
  %xs = tile.view %x [] : !tile.ptr<f32> -> !tile.view<16x2xf32, [2, 1]>
  %ys = tile.view %y [] : !tile.ptr<f32> -> !tile.view<16x2xf32, [2, 1]>
  %first = tile.splat %a : f32 -> !tile.tile<16xf32>
  %second = tile.splat %b : f32 -> !tile.tile<16x1xf32>
  tile.store %first, %xs[%zero, %zero] block [16, 0] : !tile.tile<16xf32>, !tile.view<16x2xf32, [2, 1]>
  tile.store %second, %xs[%zero, %one] block [16, 1] : !tile.tile<16x1xf32>, !tile.view<16x2xf32, [2, 1]>
  %table = tile.load %xs[%zero, %zero] block [16, 2] : !tile.view<16x2xf32, [2, 1]> -> !tile.tile<16x2xf32>
  %more = tile.add %table, %table : (!tile.tile<16x2xf32>, !tile.tile<16x2xf32>) -> !tile.tile<16x2xf32>
  tile.store %more, %ys[%zero, %zero] block [16, 2] : !tile.tile<16x2xf32>, !tile.view<16x2xf32, [2, 1]>
  %column = tile.load %ys[%zero, %one] block [16, 0] : !tile.view<16x2xf32, [2, 1]> -> !tile.tile<16xf32>
  tile.store %column, %xs[%zero, %zero] block [16, 0] : !tile.tile<16xf32>, !tile.view<16x2xf32, [2, 1]>
}

// -----

// The state is the first one in the first step, and what the step before made in all others: a loop carries one tile.

// CHECK-LABEL: tile.kernel @begins_as_the_first(
// CHECK:         %s = tile.load
// CHECK:         %{{.*}} = tile.for %t = %zero to %T step 1 init(%[[STATE:.*]] = %s) : !tile.tile<8xf32> {
// CHECK-NOT:       tile.select
// CHECK:           %h = tile.exp %[[STATE]]
// CHECK:           tile.yield %h : !tile.tile<8xf32>
tile.kernel @begins_as_the_first(%first: !tile.ptr<f32>, %hs: !tile.ptr<f32>, %T: index) grid [] {
  %zero = tile.const 0 : index -> index
  %eight = tile.const 8 : index -> index
  %none = tile.const 0.0 : f32 -> !tile.tile<8xf32>
  %begin = tile.view %first[] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  %s = tile.load %begin[%zero] block [8] : !tile.view<8xf32, [1]> -> !tile.tile<8xf32>
  %last, %kept = tile.for %t = %zero to %T step 1 init(%a = %none, %b = %s) : !tile.tile<8xf32>, !tile.tile<8xf32> {
    %later = tile.ne %t, %zero : (index, index) -> i1
    %c = tile.select %later, %a, %b : (i1, !tile.tile<8xf32>, !tile.tile<8xf32>) -> !tile.tile<8xf32>
    %h = tile.exp %c : (!tile.tile<8xf32>) -> !tile.tile<8xf32>
    %at = tile.mul %t, %eight : (index, index) -> index
    %row = tile.view %hs offset %at[] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
    tile.store %h, %row[%zero] block [8] : !tile.tile<8xf32>, !tile.view<8xf32, [1]>
    tile.yield %h, %c : !tile.tile<8xf32>, !tile.tile<8xf32>
  }
}

// -----

// What is read after the loop, which may not run, is not what the loop begins with.

// CHECK-LABEL: tile.kernel @read_after_the_loop(
// CHECK:           tile.select
// CHECK:         tile.store
tile.kernel @read_after_the_loop(%first: !tile.ptr<f32>, %h: !tile.ptr<f32>, %T: index) grid [] {
  %zero = tile.const 0 : index -> index
  %none = tile.const 0.0 : f32 -> !tile.tile<8xf32>
  %begin = tile.view %first[] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  %s = tile.load %begin[%zero] block [8] : !tile.view<8xf32, [1]> -> !tile.tile<8xf32>
  %last = tile.for %t = %zero to %T step 1 init(%a = %none) : !tile.tile<8xf32> {
    %later = tile.ne %t, %zero : (index, index) -> i1
    %c = tile.select %later, %a, %s : (i1, !tile.tile<8xf32>, !tile.tile<8xf32>) -> !tile.tile<8xf32>
    %next = tile.exp %c : (!tile.tile<8xf32>) -> !tile.tile<8xf32>
    tile.yield %next : !tile.tile<8xf32>
  }
  %end = tile.view %h[] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  tile.store %last, %end[%zero] block [8] : !tile.tile<8xf32>, !tile.view<8xf32, [1]>
}

// -----

// A kernel that writes nothing goes, with its launch and the branch round it.

// CHECK-LABEL: loop.program @idle
// CHECK-NOT:     loop.if
// CHECK-NOT:     loop.launch
// CHECK-NOT:     tile.kernel @idle_kernel
loop.program @idle dims(t: T) {
  %x = loop.input "x" : !loop.buffer<8xf32>
  %s = loop.alloc : !loop.buffer<8xf32>
  loop.if T >= 1 {
    loop.launch @idle_kernel(%x, %s)
  }
}
tile.kernel @idle_kernel(%x: !tile.ptr<f32>, %s: !tile.ptr<f32>) grid [] {
  %zero = tile.const 0 : index -> index
  %from = tile.view %x[] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  %a = tile.load %from[%zero] block [8] : !tile.view<8xf32, [1]> -> !tile.tile<8xf32>
  %to = tile.view %s[] : !tile.ptr<f32> -> !tile.view<8xf32, [1]>
  tile.store %a, %to[%zero] block [8] : !tile.tile<8xf32>, !tile.view<8xf32, [1]>
}
