//! Adds addresses to a network interface for a while (rtnetlink(7)); simulated devices on a real
//! interface need their own.

const std = @import("std");
const base = @import("base");
const sys = @import("../sys.zig");
const linux = std.os.linux;

pub const InterfaceAddresses = @This();

index: u32,
added: base.BoundedArray(base.Ip4, addresses_max) = .empty,

pub const addresses_max = 4096;
const prefix_size_default = 24;

const Message = extern struct {
    header: linux.nlmsghdr,
    family: u8 = linux.AF.INET,
    prefix_size: u8,
    flags: u8 = 0,
    scope: u8 = 0,
    index: u32,
    attribute_size: u16 = 8,
    /// IFA_LOCAL: the address itself.
    attribute_kind: u16 = 2,
    ip: [4]u8,
};

pub fn init(name: []const u8) error{NoInterface}!InterfaceAddresses {
    const siocgifindex = 0x8933;
    const rc = linux.socket(linux.AF.INET, linux.SOCK.DGRAM | linux.SOCK.CLOEXEC, 0);
    const fd: i32 = @intCast(sys.check(rc) catch return error.NoInterface);
    defer sys.close(fd);
    // struct ifreq: the name, then a union that begins with the index.
    var request: [40]u8 align(8) = @splat(0);
    if (name.len >= linux.IFNAMESIZE) return error.NoInterface;
    @memcpy(request[0..name.len], name);
    _ = sys.check(linux.ioctl(fd, siocgifindex, @intFromPtr(&request))) catch
        return error.NoInterface;
    return .{ .index = std.mem.readInt(u32, request[16..20], .native) };
}

/// An address that cannot be added (or already exists) is left alone; using it then fails by
/// itself.
pub fn add(addresses: *InterfaceAddresses, ip: base.Ip4, subnet_mask: ?base.Ip4) void {
    const prefix_size: u8 =
        if (subnet_mask) |mask| @popCount(mask.toInt()) else prefix_size_default;
    if (!addresses.change(.RTM_NEWADDR, linux.NLM_F_CREATE | linux.NLM_F_EXCL, ip, prefix_size))
        return;
    addresses.added.append(ip) catch {
        _ = addresses.change(.RTM_DELADDR, 0, ip, prefix_size);
    };
}

pub fn removeAll(addresses: *InterfaceAddresses) void {
    for (addresses.added.constSlice()) |ip| _ = addresses.change(.RTM_DELADDR, 0, ip, 32);
    addresses.added.clear();
}

fn change(
    addresses: *const InterfaceAddresses,
    kind: linux.NetlinkMessageType,
    flags: u16,
    ip: base.Ip4,
    prefix_size: u8,
) bool {
    const rc =
        linux.socket(linux.AF.NETLINK, linux.SOCK.RAW | linux.SOCK.CLOEXEC, linux.NETLINK.ROUTE);
    const fd: i32 = @intCast(sys.check(rc) catch return false);
    defer sys.close(fd);
    const message: Message = .{
        .header = .{
            .len = @sizeOf(Message),
            .type = kind,
            .flags = linux.NLM_F_REQUEST | linux.NLM_F_ACK | flags,
            .seq = 1,
            .pid = 0,
        },
        .prefix_size = prefix_size,
        .index = addresses.index,
        .ip = ip.bytes,
    };
    const bytes = std.mem.asBytes(&message);
    _ = sys.check(linux.sendto(fd, bytes, bytes.len, 0, null, 0)) catch return false;
    // struct nlmsgerr follows the header: its first field is 0 or a negative errno.
    var answer: [1024]u8 align(4) = undefined;
    const size = sys.check(linux.recvfrom(fd, &answer, answer.len, 0, null, null)) catch
        return false;
    if (size < @sizeOf(linux.nlmsghdr) + 4) return false;
    return std.mem.readInt(i32, answer[@sizeOf(linux.nlmsghdr)..][0..4], .native) == 0;
}
