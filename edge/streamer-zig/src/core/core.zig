//! Module `core`; ../../../docs/ARCHITECTURE.md says what belongs here.

pub const StreamServer = @import("stream_server.zig");
pub const boot_phase = @import("boot_phase.zig");
pub const boot = @import("boot.zig");
pub const boot_report = @import("boot_report.zig");
pub const BootTable = @import("boot_table.zig").BootTable;

test {
    _ = StreamServer;
    _ = boot_phase;
    _ = boot;
    _ = boot_report;
    _ = @import("boot_table.zig");
}
