//! Module `wire`: bytes <-> structs. No state, no clock, no allocation.

pub const stream = @import("stream.zig");

test {
    _ = stream;
}
