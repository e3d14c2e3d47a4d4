//! Module `core`; ../../../docs/ARCHITECTURE.md says what belongs here.

pub const StreamServer = @import("stream_server.zig");

test {
    _ = StreamServer;
}
