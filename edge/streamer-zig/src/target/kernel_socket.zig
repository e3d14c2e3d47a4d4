//! The socket of the kernel's nbd driver: puts its requests into the queue and sends replies from
//! it, in whatever parts the socket takes. It never waits.

const std = @import("std");
const assert = std.debug.assert;
const linux = std.os.linux;
const core = @import("core");
const nbd = @import("wire").nbd;
const sys = @import("host").sys;

const Buffers = @import("shared_memory.zig").Buffers;

pub const KernelSocket = @This();

fd: i32,
queue: core.target.NbdQueue,
/// One for each slot of the queue.
buffers: *Buffers,
request: [nbd.request_size]u8 = undefined,
request_filled: usize = 0,
/// Remaining bytes of a refused write, to be discarded.
drop_left: u32 = 0,
/// Part of a write whose bytes are arriving.
filling: ?core.target.NbdQueue.Part = null,
filled: u32 = 0,
outgoing: ?OutgoingReply = null,

/// A piece being sent. The header is built once, since the socket may take a part of it.
const OutgoingReply = struct {
    piece: core.target.NbdQueue.Outgoing,
    header: [nbd.reply_size]u8,
    header_size: usize,
    sent: usize = 0,
};

/// The kernel closed the device, or the two disagree on their position in the bytes.
pub const Error = error{KernelGone};

/// `fd` is one end of a stream socket pair.
pub fn init(fd: i32, disk_size: u64, takes_writes: bool, buffers: *Buffers) KernelSocket {
    var socket: KernelSocket = .{ .fd = fd, .queue = .init(disk_size), .buffers = buffers };
    socket.queue.takes_writes = takes_writes;
    return socket;
}

/// A request, with its bytes.
pub fn nextPart(socket: *KernelSocket) Error!?core.target.NbdQueue.Part {
    while (true) {
        if (socket.filling == null) {
            socket.filling = socket.queue.nextPartToFill() orelse return socket.queue.nextPart();
            socket.filled = 0;
        }
        const part = socket.filling.?;
        while (socket.filled < part.length) {
            const size = try socket.receive(socket.buffers[part.slot][socket.filled..part.length]);
            if (size == 0) return null;
            socket.filled += @intCast(size);
        }
        socket.filling = null;
        socket.queue.filled(part.slot);
        return part;
    }
}

/// Poll events to wait for.
pub fn pollEvents(socket: *const KernelSocket) i16 {
    var events: i16 = 0;
    if (socket.queue.wantsRequest() or socket.filling != null) events |= linux.POLL.IN;
    if (socket.outgoing != null) events |= linux.POLL.OUT;
    return events;
}

/// Receives requests until a read must be served first; returns true then.
pub fn takeRequests(socket: *KernelSocket) Error!bool {
    var took_any = false;
    while (socket.filling == null and socket.queue.wantsRequest()) {
        if (!try socket.fillRequest()) break;
        took_any = true;
        const request = nbd.parseRequest(&socket.request) catch return error.KernelGone;
        socket.request_filled = 0;
        if (request.command == .disconnect) return error.KernelGone;
        socket.queue.take(request);
        if (request.command == .write and
            !socket.queue.wantsBytes()) socket.drop_left = request.length;
    }
    return took_any;
}

/// Sends complete replies; returns true if anything was sent.
pub fn sendReplies(socket: *KernelSocket) Error!bool {
    var sent_any = false;
    while (true) {
        if (socket.outgoing == null) {
            const piece = socket.queue.nextOutgoing() orelse return sent_any;
            socket.outgoing = .{
                .piece = piece,
                .header = if (piece.header) |header| nbd.emitReply(header) else undefined,
                .header_size = if (piece.header == null) 0 else nbd.reply_size,
            };
        }
        const sending = &socket.outgoing.?;
        const count = try socket.send(sending);
        if (count == 0) return sent_any;
        sent_any = true;
        sending.sent += count;
        const size = sending.header_size + sending.piece.length;
        assert(sending.sent <= size);
        if (sending.sent < size) continue;
        socket.queue.sent(sending.piece.slot);
        socket.outgoing = null;
    }
}

/// Returns true if `request` is complete.
fn fillRequest(socket: *KernelSocket) Error!bool {
    var thrown_away: [4096]u8 = undefined;
    while (socket.drop_left > 0) {
        const size = try socket.receive(thrown_away[0..@min(socket.drop_left, thrown_away.len)]);
        if (size == 0) return false;
        socket.drop_left -= @intCast(size);
    }
    while (socket.request_filled < socket.request.len) {
        const size = try socket.receive(socket.request[socket.request_filled..]);
        if (size == 0) return false;
        socket.request_filled += size;
    }
    return true;
}

/// Returns 0 if nothing is there.
fn receive(socket: *KernelSocket, buffer: []u8) Error!usize {
    const rc = linux.recvfrom(socket.fd, buffer.ptr, buffer.len, linux.MSG.DONTWAIT, null, null);
    const size = sys.check(rc) catch |err| switch (err) {
        error.WouldBlock, error.Interrupted => return 0,
        error.SystemCallFailed => return error.KernelGone,
    };
    return if (size == 0) error.KernelGone else size;
}

/// Returns 0 if the socket is full.
fn send(socket: *KernelSocket, sending: *const OutgoingReply) Error!usize {
    const header_sent = @min(sending.sent, sending.header_size);
    const content_sent = sending.sent - header_sent;
    const header = sending.header[header_sent..sending.header_size];
    const content = socket.buffers[sending.piece.slot][content_sent..sending.piece.length];
    const vectors = [_]std.posix.iovec_const{
        .{ .base = header.ptr, .len = header.len },
        .{ .base = content.ptr, .len = content.len },
    };
    const message: linux.msghdr_const = .{
        .name = null,
        .namelen = 0,
        .iov = &vectors,
        .iovlen = vectors.len,
        .control = null,
        .controllen = 0,
        .flags = 0,
    };
    const rc = linux.sendmsg(socket.fd, &message, linux.MSG.DONTWAIT | linux.MSG.NOSIGNAL);
    return sys.check(rc) catch |err| switch (err) {
        error.WouldBlock, error.Interrupted => 0,
        error.SystemCallFailed => error.KernelGone,
    };
}
