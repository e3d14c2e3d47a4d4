//! The packets with which the TFTP server answers a request, OACK and ERROR, and their size towards
//! a peer whose address is unproven.

const std = @import("std");
const assert = std.debug.assert;
const base = @import("base");
const tftp = @import("wire").tftp;
const tftp_step = @import("event.zig");
const TftpWindow = @import("window.zig");
const Endpoint = base.Endpoint;
const Send = tftp_step.Send;
const Transfer = tftp_step.Transfer;

/// Holds every packet but DATA: an OACK of all options, or an ERROR.
pub const Buffer = [160]u8;

/// Returns the accepted options among those requested (RFC 2347).
pub fn oack(
    transfer: *const Transfer,
    requested: *const tftp.Options,
    window: *const TftpWindow,
    reply: *Buffer,
) tftp_step.Packet {
    const packet: tftp.Packet = .{ .oack = .{
        .blksize = if (requested.blksize != null) window.blksize else null,
        .tsize = if (requested.tsize != null) transfer.file.size else null,
        .timeout_s = requested.timeout_s,
        .windowsize = if (requested.windowsize != null) window.windowsize else null,
    } };
    return .{ .to = transfer.peer, .bytes = tftp.emit(&packet, reply) catch unreachable };
}

/// Size of a first packet in bytes.
pub fn sizeOf(send: *const Send) usize {
    switch (send.*) {
        .nothing => return 0,
        .packet => |packet| return packet.bytes.len,
        .blocks => |blocks| {
            assert(blocks.count == 1);
            var iterator = blocks.iterate();
            return tftp.data_header_size + iterator.next().?.size;
        },
    }
}

/// Writes an ERROR that is no longer than the packet it answers: its text is truncated.
pub fn refusal(
    to: Endpoint,
    code: tftp.ErrorCode,
    text: []const u8,
    size_max: usize,
    reply: *Buffer,
) Send {
    const overhead = 5; // Opcode, code and the zero byte; the shortest request has 9 bytes.
    assert(size_max >= overhead);
    const size = @min(text.len, size_max - overhead);
    const packet: tftp.Packet = .{ .err = .{ .code = code, .text = text[0..size] } };
    const bytes = tftp.emit(&packet, reply) catch unreachable;
    return .{ .packet = .{ .to = to, .bytes = bytes } };
}
