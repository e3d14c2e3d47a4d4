//! Tests of what the measuring program computes by itself: they need nothing of the other modules, and so compile quickly.

test {
    _ = @import("latencies.zig");
    _ = @import("pattern.zig");
}
