//! Module `host`; ../../../docs/ARCHITECTURE.md says what belongs here.

pub const sys = @import("sys.zig");
pub const sockets = @import("sockets.zig");
pub const Epoll = @import("epoll.zig").Epoll;
pub const InterfaceAddresses = @import("interface_addresses.zig").InterfaceAddresses;
pub const ReportLog = @import("report_log.zig").ReportLog;

pub const DataDir = @import("data_dir.zig").DataDir;

test {
    _ = @import("data_dir.zig");
    _ = @import("boot_journal.zig");
    _ = @import("epoll.zig");
    _ = @import("interface_addresses.zig");
    _ = @import("sockets.zig");
    _ = @import("udp_socket.zig");
    _ = @import("http_server.zig");
    _ = @import("sys.zig");
    _ = @import("record_file.zig");
    _ = @import("report_log.zig");
}
