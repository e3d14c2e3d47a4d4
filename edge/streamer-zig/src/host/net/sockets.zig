//! Opens the sockets that devices reach, with the errors that a person can act on, and finds the
//! interface of an address.

const std = @import("std");
const base = @import("base");
const sys = @import("../sys.zig");
const assert = std.debug.assert;
const linux = std.os.linux;

pub const OpenError = error{ PortInUse, PermissionDenied, AddressNotHere, SystemCallFailed };

pub const Interface = struct {
    index: u32,
    name_buffer: [linux.IFNAMESIZE]u8,
    name_size: u8,
    /// The prefix length of the address that was looked up.
    prefix_size: u8,

    pub fn name(interface: *const Interface) []const u8 {
        return interface.name_buffer[0..interface.name_size];
    }
};

/// Opens a socket for broadcasts on the interface of this name.
pub fn openUdpOn(name: []const u8, address: base.Endpoint) OpenError!i32 {
    var interface: Interface = .{
        .index = 0,
        .name_buffer = @splat(0),
        .name_size = @intCast(name.len),
        .prefix_size = 0,
    };
    @memcpy(interface.name_buffer[0..name.len], name);
    return openUdp(.{ .address = address, .interface = &interface, .broadcast = true });
}

/// Starts a connection from `own` or from an address that the system chooses; it is established
/// when the socket is writable.
pub fn connectTcp(own: ?base.Ip4, to: base.Endpoint) OpenError!i32 {
    const fd = try openSocket(linux.SOCK.STREAM);
    errdefer sys.close(fd);
    if (own) |ip| try bind(fd, .{ .ip = ip, .port = 0 });
    const address = toSockaddr(to);
    return switch (linux.errno(linux.connect(fd, @ptrCast(&address), @sizeOf(linux.sockaddr.in)))) {
        .SUCCESS, .INPROGRESS => fd,
        else => error.SystemCallFailed,
    };
}

pub fn isLoopback(ip: base.Ip4) bool {
    return ip.bytes[0] == 127;
}

pub const UdpOptions = struct {
    address: base.Endpoint,
    /// Receive broadcasts on this interface only; the address is then 0.0.0.0.
    interface: ?*const Interface = null,
    broadcast: bool = false,
    /// Each datagram comes with its destination address.
    with_destination: bool = false,
    /// In bytes; the kernel may give less.
    buffer_size: u32 = 1 << 20,
    /// Null: the same as for receiving.
    send_buffer_size: ?u32 = null,
    /// No packet is fragmented on its path.
    whole: bool = false,
    /// Other shared sockets have the same address (`share`).
    is_shared: bool = false,
};

/// Lets sockets that are opened as shared use this socket's address from now on. It was opened
/// alone, so that no other process has the address.
pub fn share(fd: i32) OpenError!void {
    const so_reuseport = 15;
    try setInt(fd, linux.SOL.SOCKET, so_reuseport, 1);
}

/// Returns the address and port of a socket.
pub fn addressOf(fd: i32) error{SystemCallFailed}!base.Endpoint {
    var address: linux.sockaddr.in = undefined;
    var size: linux.socklen_t = @sizeOf(linux.sockaddr.in);
    _ = sys.check(linux.getsockname(fd, @ptrCast(&address), &size)) catch
        return error.SystemCallFailed;
    return fromSockaddr(&address);
}

/// Sends packets with "don't fragment", and ignores what routers report about their size:
/// IP_PMTUDISC_PROBE of ip(7).
pub fn neverCut(fd: i32) void {
    const probe = 3;
    // Where the system does not support it, packets may be fragmented, which is slower but not
    // wrong.
    setInt(fd, linux.SOL.IP, linux.IP.MTU_DISCOVER, probe) catch {};
}

/// Returns the UDP payload in bytes that this machine can send on a connected socket's path; null
/// if it is not known.
pub fn payloadSizeOf(fd: i32) ?u32 {
    const headers_size = 28;
    var mtu: i32 = 0;
    var size: linux.socklen_t = @sizeOf(i32);
    _ = sys.check(
        linux.getsockopt(fd, linux.SOL.IP, linux.IP.MTU, std.mem.asBytes(&mtu), &size),
    ) catch return null;
    return if (mtu > headers_size) @intCast(mtu - headers_size) else null;
}

/// Gives a socket what its options say, except for its interface and its address.
pub fn prepareUdp(fd: i32, options: UdpOptions) OpenError!void {
    if (options.broadcast) try setInt(fd, linux.SOL.SOCKET, linux.SO.BROADCAST, 1);
    if (options.with_destination) try setInt(fd, linux.SOL.IP, linux.IP.PKTINFO, 1);
    if (options.whole) neverCut(fd);
    if (options.is_shared) try share(fd);
    setBuffer(fd, linux.SO.RCVBUFFORCE, linux.SO.RCVBUF, options.buffer_size);
    setBuffer(fd, linux.SO.SNDBUFFORCE, linux.SO.SNDBUF, options.send_buffer_size orelse
        options.buffer_size);
}

pub fn openUdp(options: UdpOptions) OpenError!i32 {
    const fd = try openSocket(linux.SOCK.DGRAM);
    errdefer sys.close(fd);
    try prepareUdp(fd, options);
    if (options.interface) |interface| {
        const name = interface.name();
        const rc = linux.setsockopt(
            fd,
            linux.SOL.SOCKET,
            linux.SO.BINDTODEVICE,
            name.ptr,
            @intCast(name.len),
        );
        if (linux.errno(rc) == .PERM) return error.PermissionDenied;
        _ = sys.check(rc) catch return error.SystemCallFailed;
    }
    try bind(fd, options.address);
    return fd;
}

pub fn openListener(address: base.Endpoint) OpenError!i32 {
    const fd = try openSocket(linux.SOCK.STREAM);
    errdefer sys.close(fd);
    // Only for connections of an earlier process in TIME_WAIT; two listeners still exclude each
    // other.
    try setInt(fd, linux.SOL.SOCKET, linux.SO.REUSEADDR, 1);
    try bind(fd, address);
    _ = sys.check(linux.listen(fd, 4096)) catch return error.SystemCallFailed;
    return fd;
}

/// Returns this machine's source address for packets to another machine; null without a route.
pub fn sourceTo(ip: base.Ip4) ?base.Ip4 {
    const fd = openSocket(linux.SOCK.DGRAM) catch return null;
    defer sys.close(fd);
    // Nothing is sent: a datagram socket only looks up the route.
    const to = toSockaddr(.{ .ip = ip, .port = 67 });
    _ = sys.check(linux.connect(fd, @ptrCast(&to), @sizeOf(linux.sockaddr.in))) catch return null;
    var own: linux.sockaddr.in = undefined;
    var size: linux.socklen_t = @sizeOf(linux.sockaddr.in);
    _ = sys.check(linux.getsockname(fd, @ptrCast(&own), &size)) catch return null;
    return fromSockaddr(&own).ip;
}

/// Returns the interface that has this address; null if this machine does not have it.
pub fn interfaceOf(ip: base.Ip4) error{SystemCallFailed}!?Interface {
    var search: Search = .{ .ip = ip };
    try eachAddress(&search, Search.take);
    const found = search.found orelse return null;
    return try withName(found.index, found.prefix_size);
}

const Search = struct {
    ip: base.Ip4,
    found: ?Address = null,

    fn take(search: *Search, address: Address) bool {
        if (!address.ip.eql(search.ip)) return true;
        search.found = address;
        return false;
    }
};

/// An IPv4 address of this machine.
pub const Address = struct { index: u32, prefix_size: u8, ip: base.Ip4 };

/// Calls `take` for each IPv4 address of this machine until it returns false.
pub fn eachAddress(
    context: anytype,
    comptime take: fn (@TypeOf(context), Address) bool,
) error{SystemCallFailed}!void {
    const protocol = linux.NETLINK.ROUTE;
    const rc = linux.socket(linux.AF.NETLINK, linux.SOCK.RAW | linux.SOCK.CLOEXEC, protocol);
    const fd: i32 = @intCast(sys.check(rc) catch return error.SystemCallFailed);
    defer sys.close(fd);
    const Request = extern struct { header: linux.nlmsghdr, address: AddressMessage };
    const request: Request = .{
        .header = .{
            .len = @sizeOf(Request),
            .type = .RTM_GETADDR,
            .flags = linux.NLM_F_REQUEST | linux.NLM_F_DUMP,
            .seq = 1,
            .pid = 0,
        },
        .address = .{
            .family = linux.AF.INET,
            .prefix_size = 0,
            .flags = 0,
            .scope = 0,
            .index = 0,
        },
    };
    const bytes = std.mem.asBytes(&request);
    _ = sys.check(linux.sendto(fd, bytes, bytes.len, 0, null, 0)) catch
        return error.SystemCallFailed;
    while (true) {
        var buffer: [16384]u8 align(4) = undefined;
        const size = sys.check(linux.recvfrom(fd, &buffer, buffer.len, 0, null, null)) catch
            return error.SystemCallFailed;
        if (!readAddresses(buffer[0..size], context, take)) return;
    }
}

pub fn setInt(fd: i32, level: i32, option: u32, value: i32) error{SystemCallFailed}!void {
    const rc = linux.setsockopt(fd, level, option, @ptrCast(&value), @sizeOf(i32));
    _ = sys.check(rc) catch return error.SystemCallFailed;
}

pub fn toSockaddr(endpoint: base.Endpoint) linux.sockaddr.in {
    return .{
        .port = std.mem.nativeToBig(u16, endpoint.port),
        .addr = std.mem.bytesToValue(u32, &endpoint.ip.bytes),
    };
}

pub fn fromSockaddr(address: *const linux.sockaddr.in) base.Endpoint {
    return .{
        .ip = .{ .bytes = std.mem.toBytes(address.addr) },
        .port = std.mem.bigToNative(u16, address.port),
    };
}

fn openSocket(kind: u32) OpenError!i32 {
    const flags = kind | linux.SOCK.NONBLOCK | linux.SOCK.CLOEXEC;
    return @intCast(
        sys.check(linux.socket(linux.AF.INET, flags, 0)) catch return error.SystemCallFailed,
    );
}

fn bind(fd: i32, address: base.Endpoint) OpenError!void {
    const sockaddr = toSockaddr(address);
    switch (linux.errno(linux.bind(fd, @ptrCast(&sockaddr), @sizeOf(linux.sockaddr.in)))) {
        .SUCCESS => {},
        .ADDRINUSE => return error.PortInUse,
        .ACCES => return error.PermissionDenied,
        .ADDRNOTAVAIL => return error.AddressNotHere,
        else => return error.SystemCallFailed,
    }
}

/// `forced` is SO_RCVBUFFORCE or SO_SNDBUFFORCE, which needs CAP_NET_ADMIN; without it the system's
/// limit applies. `size` is in bytes.
pub fn setBuffer(fd: i32, forced: u32, plain: u32, size: u32) void {
    const value: i32 = @intCast(size);
    setInt(
        fd,
        linux.SOL.SOCKET,
        forced,
        value,
    ) catch setInt(fd, linux.SOL.SOCKET, plain, value) catch {};
}

/// struct ifaddrmsg (linux/if_addr.h).
const AddressMessage =
    extern struct { family: u8, prefix_size: u8, flags: u8, scope: u8, index: u32 };

/// Returns false at the end, or when `take` has returned false.
fn readAddresses(
    bytes: []align(4) const u8,
    context: anytype,
    comptime take: fn (@TypeOf(context), Address) bool,
) bool {
    const header_size = @sizeOf(linux.nlmsghdr);
    var at: usize = 0;
    while (bytes.len - at >= header_size) {
        const header = std.mem.bytesToValue(linux.nlmsghdr, bytes[at..][0..header_size]);
        if (header.len < header_size or header.len > bytes.len - at) return false;
        if (header.type == .DONE or header.type == .ERROR) return false;
        const body = bytes[at + header_size .. at + header.len];
        if (localAddress(body)) |ip| {
            const message = std.mem.bytesToValue(AddressMessage, body[0..@sizeOf(AddressMessage)]);
            const address: Address =
                .{ .index = message.index, .prefix_size = message.prefix_size, .ip = ip };
            if (!take(context, address)) return false;
        }
        at += @min(std.mem.alignForward(usize, header.len, 4), bytes.len - at);
    }
    return true;
}

fn localAddress(body: []const u8) ?base.Ip4 {
    // IFA_LOCAL is the address itself; IFA_ADDRESS is the peer's on point-to-point links.
    const ifa_local = 2;
    if (body.len < @sizeOf(AddressMessage)) return null;
    var at: usize = @sizeOf(AddressMessage);
    while (body.len - at >= 4) {
        const size = std.mem.readInt(u16, body[at..][0..2], .native);
        const kind = std.mem.readInt(u16, body[at + 2 ..][0..2], .native);
        if (size < 4 or size > body.len - at) return null;
        if (kind == ifa_local and size == 8) return .{ .bytes = body[at + 4 ..][0..4].* };
        at += @min(std.mem.alignForward(usize, size, 4), body.len - at);
    }
    return null;
}

/// Returns the size in bytes of the largest IP packet of this interface.
pub fn mtuOf(name: []const u8) error{SystemCallFailed}!u32 {
    const siocgifmtu = 0x8921;
    const fd = openSocket(linux.SOCK.DGRAM) catch return error.SystemCallFailed;
    defer sys.close(fd);
    // struct ifreq: the name, then a union that begins with the MTU.
    var request: [40]u8 align(8) = @splat(0);
    if (name.len >= linux.IFNAMESIZE) return error.SystemCallFailed;
    @memcpy(request[0..name.len], name);
    _ = sys.check(linux.ioctl(fd, siocgifmtu, @intFromPtr(&request))) catch
        return error.SystemCallFailed;
    return std.mem.readInt(u32, request[16..20], .native);
}

pub fn withName(index: u32, prefix_size: u8) error{SystemCallFailed}!Interface {
    const siocgifname = 0x8910;
    const fd = openSocket(linux.SOCK.DGRAM) catch return error.SystemCallFailed;
    defer sys.close(fd);
    // struct ifreq: the name, then a union that begins with the index.
    var request: [40]u8 align(8) = @splat(0);
    std.mem.writeInt(u32, request[16..20], index, .native);
    _ = sys.check(linux.ioctl(fd, siocgifname, @intFromPtr(&request))) catch
        return error.SystemCallFailed;
    const name = std.mem.sliceTo(request[0..linux.IFNAMESIZE], 0);
    var interface: Interface = .{
        .index = index,
        .name_buffer = @splat(0),
        .name_size = @intCast(name.len),
        .prefix_size = prefix_size,
    };
    @memcpy(interface.name_buffer[0..name.len], name);
    return interface;
}

const testing = std.testing;

test "the loopback address is on the loopback interface, and a foreign one is on none" {
    const interface = (try interfaceOf(.init(127, 0, 0, 1))).?;
    try testing.expectEqualStrings("lo", interface.name());
    try testing.expectEqual(8, interface.prefix_size);
    try testing.expectEqual(null, try interfaceOf(.init(192, 0, 2, 7)));
}

test "a taken port and a foreign address are told apart" {
    const any: base.Endpoint = .{ .ip = .init(127, 0, 0, 1), .port = 0 };
    const fd = try openUdp(.{ .address = any });
    defer sys.close(fd);
    var address: linux.sockaddr.in = undefined;
    var size: linux.socklen_t = @sizeOf(linux.sockaddr.in);
    _ = try sys.check(linux.getsockname(fd, @ptrCast(&address), &size));
    const taken = fromSockaddr(&address);
    try testing.expectError(error.PortInUse, openUdp(.{ .address = taken }));
    try testing.expectError(
        error.AddressNotHere,
        openUdp(.{ .address = .{ .ip = .init(192, 0, 2, 7), .port = 0 } }),
    );
    const listener = try openListener(.{ .ip = .init(127, 0, 0, 1), .port = 0 });
    sys.close(listener);
}
