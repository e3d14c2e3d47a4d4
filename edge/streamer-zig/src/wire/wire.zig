//! Parsers and emitters of every network protocol, and of the files that devices load. No state, no
//! clock, no allocation: a parser returns either a whole packet whose slices lie within its input,
//! or one of a few errors.

pub const authenticode = @import("image/authenticode.zig");
pub const boot_program = @import("boot_program.zig");
pub const der = @import("image/der.zig");
pub const dhcp = @import("dhcp/dhcp.zig");
pub const router_discovery = @import("net/router_discovery.zig");
pub const arp = @import("net/arp.zig");
pub const ethernet = @import("net/ethernet.zig");
pub const file_system = @import("disk/file_system.zig");
pub const http_request = @import("http/request.zig");
pub const http_target = @import("http/target.zig");
pub const initramfs_mark = @import("image/initramfs_mark.zig");
pub const kernel_image = @import("image/kernel_image.zig");
pub const marked_partition = @import("disk/marked_partition.zig");
pub const nbd = @import("nbd/nbd.zig");
pub const nbd_netlink = @import("nbd/netlink.zig");
pub const pe_image = @import("image/pe_image.zig");
pub const peer = @import("peer/peer.zig");
pub const peer_transfer = @import("peer/transfer.zig");
pub const partition_table = @import("disk/partition_table.zig");
pub const stream = @import("stream/stream.zig");
pub const tftp = @import("tftp/tftp.zig");
pub const tpm = @import("tpm/tpm.zig");
pub const wake_on_lan = @import("net/wake_on_lan.zig");

test {
    _ = authenticode;
    _ = boot_program;
    _ = der;
    _ = pe_image;
    _ = arp;
    _ = ethernet;
    _ = file_system;
    _ = http_request;
    _ = http_target;
    _ = initramfs_mark;
    _ = kernel_image;
    _ = marked_partition;
    _ = partition_table;
    _ = nbd;
    _ = @import("peer/peer_test.zig");
    _ = @import("peer/transfer_test.zig");
    _ = nbd_netlink;
    _ = stream;
    _ = tpm;
    _ = @import("dhcp/options.zig");
    _ = @import("dhcp/emit.zig");
    _ = router_discovery;
    _ = @import("dhcp/dhcp_test.zig");
    _ = @import("tftp/tftp_test.zig");
    _ = @import("net/wake_on_lan.zig");
}
