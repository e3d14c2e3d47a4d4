//! Bytes <-> structs of every protocol on the network, and of the files that devices are given. No
//! state, no clock, no allocation: a parser either gives a whole packet whose slices lie within its
//! input, or one of a few errors.

pub const authenticode = @import("authenticode.zig");
pub const boot_program = @import("boot_program.zig");
pub const der = @import("der.zig");
pub const dhcp = @import("dhcp.zig");
pub const router_discovery = @import("router_discovery.zig");
pub const ethernet = @import("ethernet.zig");
pub const file_system = @import("file_system.zig");
pub const http_request = @import("http_request.zig");
pub const http_target = @import("http_target.zig");
pub const initramfs_mark = @import("initramfs_mark.zig");
pub const kernel_image = @import("kernel_image.zig");
pub const marked_partition = @import("marked_partition.zig");
pub const nbd = @import("nbd.zig");
pub const nbd_netlink = @import("nbd_netlink.zig");
pub const pe_image = @import("pe_image.zig");
pub const peer = @import("peer.zig");
pub const partition_table = @import("partition_table.zig");
pub const stream = @import("stream.zig");
pub const tftp = @import("tftp.zig");
pub const wake_on_lan = @import("wake_on_lan.zig");

test {
    _ = authenticode;
    _ = boot_program;
    _ = der;
    _ = pe_image;
    _ = ethernet;
    _ = file_system;
    _ = http_request;
    _ = http_target;
    _ = initramfs_mark;
    _ = kernel_image;
    _ = marked_partition;
    _ = partition_table;
    _ = nbd;
    _ = @import("peer_test.zig");
    _ = nbd_netlink;
    _ = stream;
    _ = @import("dhcp_options.zig");
    _ = @import("dhcp_emit.zig");
    _ = router_discovery;
    _ = @import("dhcp_test.zig");
    _ = @import("tftp_test.zig");
    _ = @import("wake_on_lan.zig");
}
