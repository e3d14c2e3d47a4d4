//! Tests of the measuring program's own computations: they import no other module, so they compile
//! quickly.

test {
    _ = @import("latencies.zig");
    _ = @import("pattern.zig");
}
