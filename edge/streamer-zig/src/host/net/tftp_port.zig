//! TFTP on the network: datagrams to the agent, file blocks back. A window of blocks goes out as
//! one super-packet that kernel or network card cuts; its bytes are taken from where they lie in
//! memory, or read from the file in one piece.

const std = @import("std");
const core = @import("core");
const wire = @import("wire").tftp;
const EdgeIo = @import("../edge_io.zig");
const Agent = EdgeIo.Agent;
const sys = @import("../sys.zig");
const UdpSocket = @import("udp_socket.zig");

const TftpServer = core.tftp.Server;

/// Batches that are received before other sockets get their turn.
const batches_max = 4;

pub const TftpPort = @This();

policy: Agent.Tftp,
window: *Window,
busy_poll: core.tftp.BusyPoll = .{},

/// One window on its way out.
const Window = struct {
    headers: [TftpServer.windowsize_max][wire.data_header_size]u8,
    pieces: [2 * TftpServer.windowsize_max]std.posix.iovec_const,
    /// For what is not in memory.
    content: [TftpServer.windowsize_max * 1468]u8,
};

pub fn init(gpa: std.mem.Allocator, policy: Agent.Tftp) error{OutOfMemory}!TftpPort {
    return .{ .policy = policy, .window = try gpa.create(Window) };
}

pub fn deinit(port: *TftpPort, gpa: std.mem.Allocator) void {
    port.policy.deinit(gpa);
    gpa.destroy(port.window);
    port.* = undefined;
}

pub fn receive(port: *TftpPort, socket: *UdpSocket, now_us: u64) void {
    for (0..batches_max) |_| {
        const count = socket.receive();
        for (0..count) |index| {
            const datagram = socket.datagram(index);
            port.policy.receive(datagram.from, datagram.bytes, datagram.at_us, now_us);
        }
        if (count < UdpSocket.batch_max) return;
    }
}

/// `port` must not move afterwards.
pub fn calls(port: *TftpPort) EdgeIo.TftpCalls {
    return .{ .context = port, .busy_poll = &port.busy_poll, .sendBlocks = sendBlocks };
}

fn sendBlocks(
    context: *anyopaque,
    socket: *UdpSocket,
    blocks: *const TftpServer.Blocks,
    now_us: u64,
) void {
    const port: *TftpPort = @ptrCast(@alignCast(context));
    const window = port.window;
    const catalogue = port.policy.catalogue;
    const offset = (blocks.first - 1) * blocks.blksize;
    const size: usize =
        @intCast(@min(@as(u64, blocks.count) * blocks.blksize, blocks.file_size - offset));
    const content = if (catalogue.memory(blocks.source)) |bytes|
        bytes[@intCast(offset)..][0..size]
    else content: {
        catalogue.read(blocks.source, window.content[0..size], offset) catch
            return port.policy.abort(blocks.to, now_us);
        break :content window.content[0..size];
    };
    var iterator = blocks.iterate();
    for (0..blocks.count) |index| {
        const block = iterator.next().?;
        window.headers[index] = block.header;
        const bytes = content[@intCast(block.offset - offset)..][0..block.size];
        window.pieces[2 * index] =
            .{ .base = &window.headers[index], .len = wire.data_header_size };
        window.pieces[2 * index + 1] = .{ .base = bytes.ptr, .len = bytes.len };
    }
    const pieces = window.pieces[0 .. 2 * @as(usize, blocks.count)];
    socket.sendCut(blocks.to, pieces, .{
        .pieces_each = 2,
        .packet_size = wire.data_header_size + blocks.blksize,
        .in_parts = port.busy_poll.isActive(now_us),
    });
    if (blocks.slot != TftpServer.Transfer.no_slot) port.busy_poll.onSend(sys.monotonicUs());
}
