//! A device of an NBD server over TCP
//! (https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md) for the load's loop: it
//! never blocks once it is open, and bytes go from the socket straight to the read's buffer.

const std = @import("std");
const base = @import("base");
const linux = std.os.linux;
const nbd = @import("wire").nbd;
const sys = @import("host").sys;
const sockets = @import("host").sockets;
const SlotList = @import("slot_list.zig").SlotList;
const assert = std.debug.assert;

pub const NbdConnection = struct {
    fd: i32 = -1,
    reads: [SlotList.most][]u8 = undefined,
    under_way: std.bit_set.Static(SlotList.most) = .empty,
    header: [nbd.reply_size]u8 = undefined,
    header_filled: usize = 0,
    /// The read whose bytes are arriving.
    current: ?u8 = null,
    filled: usize = 0,

    pub const Error = error{ NotReached, NotNbd, DiskTooSmall, Disconnected, Refused };

    const reply_magic = 0x67446698;
    const option_magic = "IHAVEOPT";
    const export_name: u32 = 1;
    const no_zeroes: u32 = 2;
    const fixed_newstyle: u32 = 1;

    /// Waits for the server.
    pub fn open(connection: *NbdConnection, server: base.Endpoint, disk_size: u64) Error!void {
        const rc = linux.socket(linux.AF.INET, linux.SOCK.STREAM | linux.SOCK.CLOEXEC, 0);
        const fd: i32 = @intCast(sys.check(rc) catch return error.NotReached);
        errdefer sys.close(fd);
        const address = sockets.toSockaddr(server);
        _ = sys.check(linux.connect(fd, &address, @sizeOf(linux.sockaddr.in))) catch
            return error.NotReached;
        sockets.setInt(fd, linux.IPPROTO.TCP, linux.TCP.NODELAY, 1) catch return error.NotReached;
        try negotiate(fd, disk_size);
        const flags = sys.check(linux.fcntl(fd, linux.F.GETFL, 0)) catch return error.NotReached;
        const nonblocking = flags | @as(u32, @bitCast(linux.O{ .NONBLOCK = true }));
        _ = sys.check(linux.fcntl(fd, linux.F.SETFL, nonblocking)) catch return error.NotReached;
        connection.* = .{ .fd = fd };
    }

    pub fn close(connection: *NbdConnection) void {
        connection.request(.disconnect, 0, 0, 0) catch {};
        sys.close(connection.fd);
    }

    fn negotiate(fd: i32, disk_size: u64) Error!void {
        var greeting: [18]u8 = undefined;
        try receiveAll(fd, &greeting);
        if (!std.mem.eql(u8, greeting[0..16], "NBDMAGIC" ++ option_magic)) return error.NotNbd;
        var answer: [4 + 8 + 4 + 4]u8 = undefined;
        std.mem.writeInt(u32, answer[0..4], fixed_newstyle | no_zeroes, .big);
        answer[4..12].* = option_magic.*;
        std.mem.writeInt(u32, answer[12..16], export_name, .big);
        std.mem.writeInt(u32, answer[16..20], 0, .big);
        sys.writeAll(fd, &answer) catch return error.Disconnected;
        var described: [10]u8 = undefined;
        try receiveAll(fd, &described);
        if (std.mem.readInt(u64, described[0..8], .big) < disk_size) return error.DiskTooSmall;
    }

    fn receiveAll(fd: i32, buffer: []u8) Error!void {
        var filled: usize = 0;
        while (filled < buffer.len) {
            const count = sys.check(linux.read(fd, buffer[filled..].ptr, buffer.len - filled)) catch
                return error.Disconnected;
            if (count == 0) return error.Disconnected;
            filled += count;
        }
    }

    pub fn submit(connection: *NbdConnection, slot: u8, offset: u64, buffer: []u8) Error!void {
        assert(!connection.under_way.isSet(slot));
        connection.reads[slot] = buffer;
        connection.under_way.set(slot);
        try connection.request(.read, slot, offset, @intCast(buffer.len));
    }

    /// A request is far smaller than a socket's buffer, even with several in flight.
    fn request(
        connection: *NbdConnection,
        command: nbd.Command,
        handle: u64,
        offset: u64,
        length: u32,
    ) Error!void {
        const header = nbd.emitRequest(
            .{
                .command = command,
                .flags = 0,
                .handle = handle,
                .offset = offset,
                .length = length,
            },
        );
        const rc = linux.sendto(connection.fd, &header, header.len, linux.MSG.NOSIGNAL, null, 0);
        const count = sys.check(rc) catch return error.Disconnected;
        if (count != header.len) return error.Disconnected;
    }

    /// Receives what is there; slots of completed reads are added to `done`.
    pub fn receive(connection: *NbdConnection, done: *SlotList) Error!void {
        while (connection.under_way.count() > 0) {
            // With only one read in flight, the owner of the bytes is known before the header
            // arrives.
            const expected = connection.current orelse
                if (connection.under_way.count() ==
                    1) @as(u8, @intCast(connection.under_way.findFirstSet().?)) else null;
            const header_rest: []u8 = if (connection.current ==
                null) connection.header[connection.header_filled..] else &.{};
            const body_rest: []u8 =
                if (expected) |slot| connection.reads[slot][connection.filled..] else &.{};
            var vectors = [_]std.posix.iovec{
                .{ .base = header_rest.ptr, .len = header_rest.len },
                .{ .base = body_rest.ptr, .len = body_rest.len },
            };
            const wanted = header_rest.len + body_rest.len;
            const count = sys.check(
                linux.readv(connection.fd, @ptrCast(&vectors), vectors.len),
            ) catch |err| switch (err) {
                error.WouldBlock, error.Interrupted => return,
                error.SystemCallFailed => return error.Disconnected,
            };
            if (count == 0) return error.Disconnected;
            try connection.account(@min(count, header_rest.len), count -| header_rest.len, done);
            if (count < wanted) return;
        }
    }

    fn account(
        connection: *NbdConnection,
        header_count: usize,
        body_count: usize,
        done: *SlotList,
    ) Error!void {
        connection.header_filled += header_count;
        if (connection.current == null and connection.header_filled == nbd.reply_size)
            connection.current = try connection.replySlot();
        const slot = connection.current orelse return;
        connection.filled += body_count;
        if (connection.filled < connection.reads[slot].len) return;
        connection.under_way.unset(slot);
        connection.current = null;
        connection.header_filled = 0;
        connection.filled = 0;
        done.add(slot);
    }

    fn replySlot(connection: *const NbdConnection) Error!u8 {
        const header = &connection.header;
        if (std.mem.readInt(u32, header[0..4], .big) != reply_magic) return error.NotNbd;
        if (std.mem.readInt(u32, header[4..8], .big) != 0) return error.Refused;
        const handle = std.mem.readInt(u64, header[8..16], .big);
        if (handle >= SlotList.most or
            !connection.under_way.isSet(@intCast(handle))) return error.NotNbd;
        return @intCast(handle);
    }
};
