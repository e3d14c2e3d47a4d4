//! Module `host`; ../../../docs/ARCHITECTURE.md says what belongs here.

pub const sys = @import("sys.zig");
pub const ReportLog = @import("report_log.zig").ReportLog;

test {
    _ = @import("sys.zig");
    _ = @import("record_file.zig");
    _ = @import("report_log.zig");
}
