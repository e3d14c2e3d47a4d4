//! TFTP on the network: datagrams to the agent, file blocks back. A window of blocks goes out as
//! one super-packet that kernel or network card cuts; its bytes are taken from where they lie in
//! memory, or read from the file in one piece. A piece that is not in memory is read by a thread
//! first, and sent when it is there.

const std = @import("std");
const core = @import("core");
const store = @import("store");
const wire = @import("wire").tftp;
const EdgeIo = @import("../edge_io.zig");
const Agent = EdgeIo.Agent;
const sys = @import("../sys.zig");
const PageWarmer = @import("../files/page_warmer.zig");
const UdpSocket = @import("udp_socket.zig");

const TftpServer = core.tftp.Server;

/// Batches that are received before other sockets get their turn.
const batches_max = 4;

pub const TftpPort = @This();

policy: Agent.Tftp,
window: *Window,
busy_poll: core.tftp.BusyPoll = .{},
warmer: *PageWarmer,
/// What threads read, by a transfer's slot, and at the end for requests without one.
cold: []Cold,
/// Whether files can be read from memory alone.
support: std.atomic.Value(store.read_now.Support) = .init(.asks),

const Cold = struct {
    task: PageWarmer.Task = .{},
    source: u32 = 0,
    /// Null: nobody waits.
    blocks: ?TftpServer.Blocks = null,
};

/// Bytes that a thread reads at a time.
const warm_size = 2 << 20;

/// One window on its way out.
const Window = struct {
    headers: [TftpServer.windowsize_max][wire.data_header_size]u8,
    pieces: [2 * TftpServer.windowsize_max]std.posix.iovec_const,
    /// For what is not in memory.
    content: [TftpServer.windowsize_max * 1468]u8,
};

/// `warmer` is for this port alone and outlives it.
pub fn init(
    gpa: std.mem.Allocator,
    policy: Agent.Tftp,
    warmer: *PageWarmer,
) error{OutOfMemory}!TftpPort {
    const cold = try gpa.alloc(Cold, policy.server.sessions.len + 1);
    errdefer gpa.free(cold);
    @memset(cold, .{});
    return .{
        .policy = policy,
        .window = try gpa.create(Window),
        .warmer = warmer,
        .cold = cold,
    };
}

/// After the warmer's threads have ended.
pub fn deinit(port: *TftpPort, gpa: std.mem.Allocator) void {
    port.policy.deinit(gpa);
    gpa.destroy(port.window);
    gpa.free(port.cold);
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

/// Threads have read: what peers still wait for is sent.
pub fn endReads(port: *TftpPort, socket: *UdpSocket, now_us: u64) void {
    while (port.warmer.takeEnded()) |task| {
        const cold: *Cold = @alignCast(@fieldParentPtr("task", task));
        const blocks = cold.blocks orelse continue;
        cold.blocks = null;
        if (port.policy.server.awaits(&blocks)) sendBlocks(port, socket, &blocks, now_us);
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
        const bytes = window.content[0..size];
        if (port.readsFirst(blocks, bytes, offset)) return;
        break :content bytes;
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

/// Fills `bytes`; true: a thread has to read first, or the file cannot be read.
fn readsFirst(
    port: *TftpPort,
    blocks: *const TftpServer.Blocks,
    bytes: []u8,
    offset: u64,
) bool {
    const catalogue = port.policy.catalogue;
    const file = catalogue.fileOf(blocks.source);
    if (store.read_now.read(&port.support, file, bytes, offset) == bytes.len) return false;
    const is_transfer = blocks.slot != TftpServer.Transfer.no_slot;
    const cold = &port.cold[if (is_transfer) blocks.slot else port.cold.len - 1];
    // Its file is closed after this packet: the peer repeats its request.
    cold.blocks = if (is_transfer) blocks.* else null;
    if (cold.task.is_busy) return true;
    const task = &cold.task;
    const was_read = cold.source == blocks.source and task.offset <= offset and
        offset + bytes.len <= task.offset + task.size;
    const size = @min(blocks.file_size - offset, warm_size);
    if (!was_read and size > 0 and port.warmer.start(task, file, offset, size)) {
        cold.source = blocks.source;
        return true;
    }
    cold.blocks = null;
    // It was evicted since, or cannot be read by a thread.
    catalogue.read(blocks.source, bytes, offset) catch {
        port.policy.abort(blocks.to, sys.monotonicUs());
        return true;
    };
    return false;
}
