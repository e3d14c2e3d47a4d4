//! Module `host`; ../../../docs/ARCHITECTURE.md says what belongs here.

pub const sys = @import("sys.zig");
pub const sockets = @import("sockets.zig");
pub const Epoll = @import("epoll.zig").Epoll;
pub const InterfaceAddresses = @import("interface_addresses.zig").InterfaceAddresses;
pub const ReportLog = @import("report_log.zig").ReportLog;

pub const program_set = @import("program_set.zig");
pub const BootFiles = @import("boot_files.zig").BootFiles;
pub const BootJournal = @import("boot_journal.zig").BootJournal;
pub const Boots = @import("boots.zig").Boots;
pub const EdgeLoop = @import("edge_loop.zig").EdgeLoop;
pub const EdgeSockets = @import("edge_sockets.zig").EdgeSockets;
pub const Discovery = @import("discovery.zig").Discovery;
pub const PeerPort = @import("peer_port.zig").PeerPort;
pub const HttpServer = @import("http_server.zig").HttpServer;
pub const blockSignals = @import("edge_loop.zig").blockSignals;
pub const lease_file = @import("lease_file.zig");
pub const LoaderTexts = @import("loader_texts.zig").LoaderTexts;
pub const published = @import("published.zig");
pub const PowerOrderFile = @import("power_order_file.zig").PowerOrderFile;
pub const PowerOnFile = @import("power_on_file.zig").PowerOnFile;
pub const packet_filter = @import("packet_filter.zig");
pub const segment_listener = @import("segment_listener.zig");
pub const SegmentListener = @import("segment_listener.zig").SegmentListener;
pub const SegmentWatch = @import("segment_watch.zig").SegmentWatch;
pub const speak = @import("speak.zig");
pub const uplink_client = @import("uplink_client.zig");
pub const UplinkClient = uplink_client.UplinkClient;
pub const UplinkLink = @import("uplink_link.zig").UplinkLink;
pub const StateBox = @import("uplink_link.zig").StateBox;
pub const UplinkWorker = @import("uplink_worker.zig").UplinkWorker;
pub const disk_check = @import("disk_check.zig");
pub const loader_files = @import("loader_files.zig");
pub const version_table = @import("version_table.zig");
pub const data_dir = @import("data_dir.zig");
pub const DataDir = @import("data_dir.zig").DataDir;

test {
    _ = @import("power_on_file.zig");
    _ = @import("power_order_file.zig");
    _ = program_set;
    _ = @import("boot_files.zig");
    _ = @import("boot_http.zig");
    _ = published;
    _ = @import("edge_loop.zig");
    _ = lease_file;
    _ = disk_check;
    _ = loader_files;
    _ = version_table;
    _ = @import("data_dir.zig");
    _ = @import("boot_journal.zig");
    _ = @import("epoll.zig");
    _ = @import("interface_addresses.zig");
    _ = @import("interface_list.zig");
    _ = @import("sockets.zig");
    _ = packet_filter;
    _ = @import("segment_listener.zig");
    _ = @import("udp_socket.zig");
    _ = @import("kernel_stamp.zig");
    _ = @import("tcp_delivery.zig");
    _ = @import("http_server_test.zig");
    _ = @import("uplink_client_test.zig");
    _ = @import("sys.zig");
    _ = @import("record_file.zig");
    _ = @import("report_log.zig");
}
