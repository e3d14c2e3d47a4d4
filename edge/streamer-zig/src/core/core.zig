//! Module `core`; ../../../docs/ARCHITECTURE.md says what belongs here.

pub const AddressBook = @import("address_book.zig");
pub const BootClient = @import("boot_client.zig").BootClient;
pub const BootHandle = @import("boot_handle.zig").BootHandle;
pub const BootPath = @import("boot_handle.zig").BootPath;
pub const PowerOrders = @import("power_orders.zig");
pub const DhcpLeases = @import("dhcp_leases.zig");
pub const DhcpService = @import("dhcp_service.zig");
pub const nbd_queue = @import("nbd_queue.zig");
pub const NbdQueue = nbd_queue.NbdQueue;
pub const target_options = @import("target_options.zig");
pub const StreamServer = @import("stream_server.zig");
pub const TftpClient = @import("tftp_client.zig");
pub const TftpServer = @import("tftp_session.zig");
pub const boot_phase = @import("boot_phase.zig");
pub const boot = @import("boot.zig");
pub const BootGuest = @import("boot_guest.zig");
pub const boot_cause = @import("boot_cause.zig");
pub const boot_report = @import("boot_report.zig");
pub const boot_policy = @import("boot_policy.zig");
pub const BootPolicy = boot_policy.BootPolicy;
pub const boot_script = @import("boot_script.zig");
pub const kernel_fit = @import("kernel_fit.zig");
pub const desired_state = @import("desired_state.zig");
pub const uplink = @import("uplink.zig");
pub const uplink_message = @import("uplink_message.zig");
pub const BootTable = @import("boot_table.zig").BootTable;
pub const StreamClient = @import("stream_client.zig");
pub const stream_secrets = @import("stream_secrets.zig");
/// The simulated device.
pub const Device = @import("device/device.zig");
pub const read_trace = @import("device/read_trace.zig");

test {
    _ = @import("boot_handle.zig");
    _ = AddressBook;
    _ = PowerOrders;
    _ = DhcpLeases;
    _ = @import("dhcp_service_test.zig");
    _ = nbd_queue;
    _ = target_options;
    _ = StreamServer;
    _ = TftpClient;
    _ = @import("tftp_session_test.zig");
    _ = @import("tftp_transfer_test.zig");
    _ = boot_phase;
    _ = boot;
    _ = boot_cause;
    _ = BootGuest;
    _ = boot_report;
    _ = @import("boot_table.zig");
    _ = boot_policy;
    _ = boot_script;
    _ = kernel_fit;
    _ = desired_state;
    _ = uplink;
    _ = uplink_message;
    _ = StreamClient;
    _ = Device;
    _ = read_trace;
    _ = @import("request_window.zig");
    _ = @import("device/script.zig");
    _ = @import("device/http_exchange.zig");
    _ = @import("device/dhcp_exchange.zig");
    _ = @import("round_trip.zig");
}
