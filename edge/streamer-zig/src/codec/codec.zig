//! Codecs of what is stored and sent in units. Pure; memory is the caller's.

pub const lz4 = @import("lz4.zig");

test {
    _ = lz4;
}
