//! Runs a simulated device on real sockets: performs the actions of its state machine and returns
//! events to it.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const host = @import("host");
const assert = std.debug.assert;
const linux = std.os.linux;
const sys = host.sys;
const sockets = host.sockets;
const PacketReceiver = host.packet_receiver.PacketReceiver;
const Device = core.device.Device;

pub const DeviceHost = @This();

/// Datagrams or stream pieces taken from one socket before others have their turn.
const turn_max = 256;

device: Device,
index: u16,
/// Source address of its packets; null lets the system choose.
address: ?base.Ip4,
fds: std.enums.EnumArray(Socket, ?i32) = .initFill(null),
stream_to: base.Endpoint = undefined,
http_request: [core.device.Device.http_request_size_max]u8 = undefined,
http_request_size: u16 = 0,
/// Switched off, or about to restart, as ordered.
carried_out: ?core.stream.Client.Order.Kind = null,
boots: u32 = 0,

pub const Socket = enum(u8) { tftp, stream, http };

/// Shared by all devices: the DHCP socket, the loop, the disk to compare with.
pub const Environment = struct {
    epoll: host.Epoll,
    /// Scratch memory of all devices: nothing stays in it.
    receiver: PacketReceiver = .{},
    dhcp_fd: i32,
    dhcp_to: base.Endpoint,
    verify_fd: ?i32,
    /// Disks of another size than this one are not compared; null: each is.
    compared_size: ?u64,
    /// Adds offered addresses to this interface.
    interface: ?*host.InterfaceAddresses,
};

pub fn tokenOf(index: u16, socket: Socket) u64 {
    return @as(u64, @backingInt(socket) + 1) << 32 | index;
}

pub fn powerOn(
    device_host: *DeviceHost,
    environment: *const Environment,
    now_us: u64,
    own_address: ?base.Ip4,
) ?Device.Outcome {
    device_host.closeAll();
    device_host.address = own_address;
    device_host.boots += 1;
    device_host.carried_out = null;
    var random: Device.Random = undefined;
    sys.random(std.mem.asBytes(&random.xid));
    sys.random(&random.nonce_seed);
    device_host.device.powerOn(now_us, random);
    return device_host.pump(environment, now_us);
}

/// Performs all pending actions of the machine; returns the outcome if the boot has just ended.
pub fn pump(
    device_host: *DeviceHost,
    environment: *const Environment,
    now_us: u64,
) ?Device.Outcome {
    var outcome: ?Device.Outcome = null;
    var buffer: Device.Buffer = undefined;
    while (device_host.device.next(now_us, &buffer)) |action| switch (action) {
        .dhcp => |packet| sendTo(environment.dhcp_fd, environment.dhcp_to, packet),
        .use_address => |given| {
            device_host.address = given.ip;
            if (environment.interface) |interface| interface.add(given.ip, given.subnet_mask);
            device_host.closeAll();
        },
        .tftp => |packet| if (device_host.udp(environment, .tftp)) |fd| sendTo(
            fd,
            packet.to,
            packet.bytes,
        ),
        .solicit_router => unreachable, // Its profile waits for none.
        .http_open => |open| device_host.openHttp(environment, now_us, open.to, open.request),
        .http_close => device_host.close(.http),
        .stream_open => |endpoint| {
            device_host.close(.stream);
            device_host.stream_to = endpoint;
        },
        .stream => |packet| if (device_host.udp(environment, .stream)) |fd| sendTo(
            fd,
            device_host.stream_to,
            packet,
        ),
        .read_done => |read| if (!device_host.matches(environment, read.offset, read.bytes))
            device_host.device.fail(now_us, "bytes differ from the disk file"),
        .write_ended => unreachable, // It submits none.
        .finished => |ended| outcome = ended,
        .carry_out => |order| {
            device_host.device.powerOff();
            device_host.closeAll();
            device_host.carried_out = order.kind;
        },
    };
    return outcome;
}

/// Handles an event of one of the device's sockets.
pub fn ready(
    device_host: *DeviceHost,
    environment: *Environment,
    socket: Socket,
    now_us: u64,
) void {
    const fd = device_host.fds.get(socket) orelse return;
    switch (socket) {
        .tftp => device_host.receiveTftp(fd, now_us),
        .stream => device_host.receiveStream(&environment.receiver, fd, now_us),
        .http => device_host.continueHttp(fd, now_us),
    }
}

pub fn closeAll(device_host: *DeviceHost) void {
    for (std.enums.values(Socket)) |socket| device_host.close(socket);
}

fn close(device_host: *DeviceHost, socket: Socket) void {
    if (device_host.fds.get(socket)) |fd| sys.close(fd);
    device_host.fds.set(socket, null);
}

fn receiveTftp(device_host: *DeviceHost, fd: i32, now_us: u64) void {
    var buffer: [2048]u8 = undefined;
    for (0..turn_max) |_| {
        var from: linux.sockaddr.in = undefined;
        var size: linux.socklen_t = @sizeOf(linux.sockaddr.in);
        const count = sys.check(
            linux.recvfrom(fd, &buffer, buffer.len, 0, @ptrCast(&from), &size),
        ) catch return;
        device_host.device.receiveTftp(now_us, sockets.fromSockaddr(&from), buffer[0..count]);
    }
}

fn receiveStream(device_host: *DeviceHost, receiver: *PacketReceiver, fd: i32, now_us: u64) void {
    for (0..turn_max) |_| {
        var packets = receiver.receive(fd) orelse return;
        if (!packets.from.eql(device_host.stream_to)) continue;
        while (packets.next()) |packet| device_host.device.receiveStream(now_us, packet);
    }
}

fn udp(device_host: *DeviceHost, environment: *const Environment, socket: Socket) ?i32 {
    if (device_host.fds.get(socket)) |fd| return fd;
    const address: base.Endpoint = .{ .ip = device_host.address orelse .zero, .port = 0 };
    const fd = sockets.openUdp(.{ .address = address, .buffer_size = 8 << 20 }) catch return null;
    if (socket == .stream) PacketReceiver.join(fd);
    environment.epoll.add(fd, .read, tokenOf(device_host.index, socket)) catch {
        sys.close(fd);
        return null;
    };
    device_host.fds.set(socket, fd);
    return fd;
}

/// A connection that cannot be opened counts as closed: the machine retries.
fn openHttp(
    device_host: *DeviceHost,
    environment: *const Environment,
    now_us: u64,
    to: base.Endpoint,
    request: []const u8,
) void {
    device_host.close(.http);
    @memcpy(device_host.http_request[0..request.len], request);
    device_host.http_request_size = @intCast(request.len);
    const fd = sockets.connectTcp(device_host.address, to) catch
        return device_host.device.httpClosed(now_us);
    device_host.fds.set(.http, fd);
    environment.epoll.add(fd, .write, tokenOf(device_host.index, .http)) catch
        device_host.device.httpClosed(now_us);
}

/// The request is sent first, whole since it is small; then the answer arrives.
fn continueHttp(device_host: *DeviceHost, fd: i32, now_us: u64) void {
    if (device_host.http_request_size > 0) {
        const request = device_host.http_request[0..device_host.http_request_size];
        device_host.http_request_size = 0;
        const sent = sys.check(
            linux.sendto(fd, request.ptr, request.len, linux.MSG.NOSIGNAL, null, 0),
        ) catch 0;
        if (sent != request.len) device_host.device.httpClosed(now_us);
        return;
    }
    var buffer: [16384]u8 = undefined;
    for (0..turn_max) |_| {
        const count = sys.check(
            linux.recvfrom(fd, &buffer, buffer.len, 0, null, null),
        ) catch |err| switch (err) {
            error.WouldBlock, error.Interrupted => return,
            error.SystemCallFailed => return device_host.device.httpClosed(now_us),
        };
        if (count == 0) return device_host.device.httpClosed(now_us);
        device_host.device.receiveHttp(now_us, buffer[0..count]);
    }
}

/// The socket that only needs read events once `continueHttp` has sent the request.
pub fn wantsOnlyReading(device_host: *const DeviceHost) ?i32 {
    if (device_host.http_request_size > 0) return null;
    return device_host.fds.get(.http);
}

fn sendTo(fd: i32, to: base.Endpoint, bytes: []const u8) void {
    const address = sockets.toSockaddr(to);
    // A packet that is not sent counts as lost; the machine retransmits it.
    _ = linux.sendto(
        fd,
        bytes.ptr,
        bytes.len,
        linux.MSG.NOSIGNAL,
        @ptrCast(&address),
        @sizeOf(linux.sockaddr.in),
    );
}

fn matches(
    device_host: *const DeviceHost,
    environment: *const Environment,
    offset: u64,
    bytes: []const u8,
) bool {
    const fd = environment.verify_fd orelse return true;
    if (environment.compared_size) |size|
        if (device_host.device.client.session.?.disk_size != size) return true;
    var buffer: [core.stream.Client.read_size_max]u8 = undefined;
    assert(bytes.len <= buffer.len);
    const count = sys.readAt(fd, buffer[0..bytes.len], offset) catch return false;
    return std.mem.eql(u8, buffer[0..count], bytes);
}
