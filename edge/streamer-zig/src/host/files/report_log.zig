//! The report log of core/uplink/report_log.zig on this system's disk.

const core = @import("core");

pub const LogFiles = @import("log_files.zig");
pub const ReportLog = core.uplink.report_log.ReportLog(LogFiles);
pub const batch_size_max = core.uplink.report_log.batch_size_max;

test {
    _ = @import("report_log_test.zig");
}
