//! A block device behind an NBD socket, used like the Linux driver: several requests in flight,
//! answered in any order. The peer is either a server's Unix socket
//! (https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md), or the processes with
//! which a device attaches an edge's stream, with this program in place of the kernel's driver.

const std = @import("std");
const assert = std.debug.assert;
const linux = std.os.linux;
const nbd = @import("wire").nbd;
const attach = @import("target");

/// The kernel's limit of requests in flight on one socket.
pub const depth = 16;
pub const request_size_max = 128 << 10;

pub const Error = error{ Disconnected, Refused };

const option_magic = "IHAVEOPT";
const export_name: u32 = 1;
const no_zeroes: u32 = 2;
const fixed_newstyle: u32 = 1;

pub const NbdDevice = struct {
    fd: i32,
    /// Bytes.
    size: u64,
    /// Requests that were sent and not answered.
    under_way: usize = 0,
    /// Id of the last request; no two in flight have the same.
    handle: u64 = 0,

    /// Connects to a server that listens on a Unix socket.
    pub fn connect(path: []const u8) Error!NbdDevice {
        var address: linux.sockaddr.un = .{ .path = @splat(0) };
        if (path.len >= address.path.len) return error.Refused;
        @memcpy(address.path[0..path.len], path);
        const rc = linux.socket(linux.AF.UNIX, linux.SOCK.STREAM | linux.SOCK.CLOEXEC, 0);
        if (linux.errno(rc) != .SUCCESS) return error.Refused;
        var device: NbdDevice = .{ .fd = @intCast(rc), .size = 0 };
        errdefer _ = linux.close(device.fd);
        if (linux.errno(linux.connect(device.fd, &address, @sizeOf(linux.sockaddr.un))) != .SUCCESS)
            return error.Refused;
        try device.negotiate();
        return device;
    }

    fn negotiate(device: *NbdDevice) Error!void {
        var greeting: [18]u8 = undefined;
        try device.receive(&greeting);
        if (!std.mem.eql(u8, greeting[0..16], "NBDMAGIC" ++ option_magic)) return error.Refused;
        var answer: [4 + 8 + 4 + 4]u8 = undefined;
        std.mem.writeInt(u32, answer[0..4], fixed_newstyle | no_zeroes, .big);
        answer[4..12].* = option_magic.*;
        std.mem.writeInt(u32, answer[12..16], export_name, .big);
        std.mem.writeInt(u32, answer[16..20], 0, .big);
        try device.send(&answer, "");
        var described: [10]u8 = undefined;
        try device.receive(&described);
        device.size = std.mem.readInt(u64, described[0..8], .big);
    }

    /// Attaches the disk that a boot script's words name; two processes stay until `close`.
    pub fn ofStream(words: []const u8, first_argument: [*:0]const u8) Error!NbdDevice {
        const served = attach.serve(words, first_argument, makePair) orelse return error.Refused;
        return .{ .fd = own_end, .size = served.disk_size };
    }

    var own_end: i32 = -1;

    fn makePair(_: u64, _: bool) attach.DeviceError!i32 {
        var pair: [2]i32 = undefined;
        const kind = linux.SOCK.STREAM | linux.SOCK.CLOEXEC;
        if (linux.errno(linux.socketpair(linux.AF.UNIX, kind, 0, &pair)) != .SUCCESS)
            return error.Failed;
        own_end = pair[1];
        return pair[0];
    }

    /// Ends the session with the other side.
    pub fn close(device: *NbdDevice) void {
        device.request(.disconnect, 0, 0, "") catch {};
        _ = linux.close(device.fd);
        device.* = undefined;
    }

    /// Waits only for space in the socket, or for one answer if `depth` are in flight.
    pub fn write(device: *NbdDevice, bytes: []const u8, offset: u64) Error!void {
        assert(bytes.len <= request_size_max);
        if (device.under_way == depth) try device.takeReply();
        try device.request(.write, offset, @intCast(bytes.len), bytes);
        device.under_way += 1;
    }

    /// Waits for all writes, then for the flush, as a guest's file system does.
    pub fn flush(device: *NbdDevice) Error!void {
        while (device.under_way > 0) try device.takeReply();
        try device.request(.flush, 0, 0, "");
        device.under_way += 1;
        try device.takeReply();
    }

    /// Only while nothing else is in flight.
    pub fn read(device: *NbdDevice, buffer: []u8, offset: u64) Error!void {
        assert(device.under_way == 0);
        try device.request(.read, offset, @intCast(buffer.len), "");
        device.under_way += 1;
        try device.takeReply();
        try device.receive(buffer);
    }

    fn takeReply(device: *NbdDevice) Error!void {
        var reply: [nbd.reply_size]u8 = undefined;
        try device.receive(&reply);
        device.under_way -= 1;
        const code = std.mem.readInt(u32, reply[4..8], .big);
        if (code != 0) return error.Refused;
    }

    fn request(
        device: *NbdDevice,
        command: nbd.Command,
        offset: u64,
        length: u32,
        bytes: []const u8,
    ) Error!void {
        device.handle += 1;
        const header = nbd.emitRequest(
            .{
                .command = command,
                .flags = 0,
                .handle = device.handle,
                .offset = offset,
                .length = length,
            },
        );
        try device.send(&header, bytes);
    }

    fn send(device: *NbdDevice, header: []const u8, bytes: []const u8) Error!void {
        var sent: usize = 0;
        while (sent < header.len + bytes.len) {
            const header_rest = header[@min(sent, header.len)..];
            const rest = bytes[sent -| header.len..];
            const vectors = [_]std.posix.iovec_const{
                .{ .base = header_rest.ptr, .len = header_rest.len },
                .{ .base = rest.ptr, .len = rest.len },
            };
            const rc = linux.writev(device.fd, &vectors, vectors.len);
            switch (linux.errno(rc)) {
                .SUCCESS => sent += rc,
                .INTR => {},
                else => return error.Disconnected,
            }
        }
    }

    fn receive(device: *NbdDevice, buffer: []u8) Error!void {
        var filled: usize = 0;
        while (filled < buffer.len) {
            const rc = linux.read(device.fd, buffer[filled..].ptr, buffer.len - filled);
            switch (linux.errno(rc)) {
                .SUCCESS => if (rc == 0) return error.Disconnected else {
                    filled += rc;
                },
                .INTR => {},
                else => return error.Disconnected,
            }
        }
    }
};

pub fn nowUs() u64 {
    var ts: linux.timespec = undefined;
    _ = linux.clock_gettime(.MONOTONIC, &ts);
    return @as(u64, @intCast(ts.sec)) * std.time.us_per_s +
        @as(u64, @intCast(ts.nsec)) / std.time.ns_per_us;
}
