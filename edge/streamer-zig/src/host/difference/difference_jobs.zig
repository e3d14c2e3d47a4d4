//! The part of the jobs `pack` and `fetch` that moves bytes, beside the store's own process: a
//! fetch moves them before its version is imported, a pack after its file was made. One of either
//! at a time. The owner (store_worker.zig) starts processes and ends jobs.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const DifferenceFetch = @import("difference_fetch.zig");
const DifferenceFiles = @import("difference_files.zig");
const DifferenceSend = @import("difference_send.zig");
const ImportAhead = @import("import_ahead.zig");
const StoreChild = @import("../uplink/store_child.zig");
const TransferThread = @import("transfer_thread.zig");
const assert = std.debug.assert;
const difference_order = core.uplink.difference_order;
const messageOf = core.uplink.store_job.messageOf;
const Message = core.uplink.store_job.Message;
const Order = core.uplink.store_job.Order;

pub const DifferenceJobs = @This();

running: ?Transfer = null,
/// Imports what the running fetch has got; `is_behind`: the import waits for the whole file.
ahead: ?ImportAhead = null,
is_behind: bool = false,
/// What was fetched last: an import that waits for a lock does not compare it again.
fetched_id: ?base.Uuid = null,
/// What is to be said of the last fetch beside its import.
fetch_note: Message = .empty,

const Transfer = union(enum) {
    fetch: *DifferenceFetch,
    send: *DifferenceSend,

    fn thread(transfer: Transfer) *TransferThread {
        return switch (transfer) {
            inline else => |moved| &moved.thread,
        };
    }

    fn release(transfer: Transfer) void {
        switch (transfer) {
            .fetch => |fetch| TransferThread.release(DifferenceFetch, fetch),
            .send => |send| TransferThread.release(DifferenceSend, send),
        }
    }
};

/// What comes next in a job of a difference.
pub const Next = enum {
    /// The store's process.
    process,
    /// Bytes are moved: `take` says when that has ended.
    transfer,
    /// No thread could be started.
    impossible,
};

pub fn jobId(jobs: *const DifferenceJobs) ?base.Uuid {
    const transfer = jobs.running orelse return null;
    return transfer.thread().job_id;
}

/// A job starts.
pub fn begin(
    jobs: *DifferenceJobs,
    context: TransferThread.Context,
    order: *const Order,
) Next {
    if (difference_order.problemOf(order) != null) return .process;
    if (difference_order.fetchOf(order)) |*fetch| {
        if (jobs.fetched_id) |id| if (id.eql(fetch.difference_id)) return .process;
        assert(jobs.running == null);
        const moved = DifferenceFetch.start(context, order.id, fetch) catch return .impossible;
        jobs.running = .{ .fetch = moved };
        jobs.is_behind = false;
        return .transfer;
    }
    const pack = difference_order.packOf(order) orelse return .process;
    // An earlier process of this edge has packed it.
    return if (isPacked(context, pack.difference_id)) jobs.beginSend(context, order) else .process;
}

/// The store's process has packed it.
pub fn beginSend(
    jobs: *DifferenceJobs,
    context: TransferThread.Context,
    order: *const Order,
) Next {
    assert(jobs.running == null);
    const pack = difference_order.packOf(order).?;
    const send = DifferenceSend.start(context, order.id, &pack) catch return .impossible;
    jobs.running = .{ .send = send };
    return .transfer;
}

fn isPacked(context: TransferThread.Context, id: base.Uuid) bool {
    var files = DifferenceFiles.open(context.store_path) catch return false;
    defer files.close();
    return files.isWhole(id);
}

/// Imports what the running fetch has got.
///
/// @param program of the store's process
pub fn importAhead(jobs: *DifferenceJobs, program: []const u8, order: *const Order) void {
    const transfer = jobs.running orelse return;
    if (jobs.is_behind or transfer != .fetch) return;
    const fetch = transfer.fetch;
    const there = fetch.leading_bytes.load(.acquire);
    if (jobs.ahead) |*ahead| {
        if (!ahead.turn(there)) jobs.endAhead();
        return;
    }
    if (there == 0) return;
    var arguments: core.uplink.store_job.Arguments = .{};
    const path = fetch.thread.context.store_path;
    const refused = core.uplink.store_job.writeAhead(&arguments, program, path, order);
    jobs.is_behind = refused != null;
    if (jobs.is_behind) return;
    jobs.ahead = ImportAhead.start(&arguments, fetch.pieces.size) catch null;
    jobs.is_behind = jobs.ahead == null;
}

fn endAhead(jobs: *DifferenceJobs) void {
    if (jobs.ahead) |*ahead| ahead.stop();
    jobs.ahead = null;
    jobs.is_behind = true;
}

/// The fetch has ended. Returns the process that has imported nearly all; null: there is none.
pub fn takeAhead(jobs: *DifferenceJobs) ?StoreChild {
    defer jobs.ahead = null;
    return if (jobs.ahead) |*ahead| ahead.handOver() else null;
}

/// The store's process could not make a version of what was fetched: it is compared again.
pub fn onImportFailed(jobs: *DifferenceJobs) void {
    jobs.fetched_id = null;
}

pub const Progress = struct { done_bytes: u64, total_bytes: u64, note: []const u8 };

pub const End = struct {
    job_id: base.Uuid,
    outcome: union(enum) {
        /// The version is to be imported.
        fetched,
        sent: difference_order.Packed,
        failed: Message,
    },
};

pub const Turn = union(enum) { none, running: Progress, end: End };

pub fn take(jobs: *DifferenceJobs) Turn {
    const transfer = jobs.running orelse return .none;
    const thread = transfer.thread();
    const state = thread.stateNow();
    const end: End = .{ .job_id = thread.job_id, .outcome = switch (state) {
        .abandoned => unreachable,
        .running => return .{ .running = .{
            .done_bytes = thread.done_bytes.load(.monotonic),
            .total_bytes = thread.total_bytes.load(.monotonic),
            .note = switch (transfer) {
                .fetch => "fetching the difference",
                .send => "sending the difference to the control plane",
            },
        } },
        .failed => blk: {
            jobs.endAhead();
            break :blk .{ .failed = thread.message };
        },
        .done => switch (transfer) {
            .fetch => |fetch| blk: {
                jobs.fetched_id = fetch.difference_id;
                jobs.fetch_note = thread.message;
                break :blk .fetched;
            },
            .send => |send| .{ .sent = send.made.? },
        },
    } };
    transfer.release();
    jobs.running = null;
    return .{ .end = end };
}

/// The rate of a running transfer may be another one in the new state.
pub fn setRate(jobs: *const DifferenceJobs, orders: []const Order) void {
    const transfer = jobs.running orelse return;
    const thread = transfer.thread();
    for (orders) |*order|
        if (order.id.eql(thread.job_id)) thread.setRate(order.rateBytesPerSecond);
}

/// Nobody waits for the transfer any more.
pub fn stop(jobs: *DifferenceJobs) void {
    const transfer = jobs.running orelse return;
    jobs.endAhead();
    transfer.release();
    jobs.running = null;
}

/// What a finished fetch did: whose bytes were wrong, and what its import did.
pub fn didOf(jobs: *const DifferenceJobs, order: *const Order, did: Message) Message {
    if (difference_order.fetchOf(order) == null or jobs.fetch_note.count == 0) return did;
    var buffer: [2 * core.uplink.store_job.message_size_max + 2]u8 = undefined;
    return messageOf(std.mem.print(
        &buffer,
        "{s}. {s}",
        .{ jobs.fetch_note.constSlice(), did.constSlice() },
    ) catch unreachable);
}

const testing = std.testing;
const Pieces = core.difference.Pieces;

test "a fetch is imported while it runs, and one import that ends early is not started again" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const options: std.Io.Dir.CreateFileOptions = .{ .permissions = .executable_file };
    var file = try tmp.dir.createFile(testing.io, "program", options);
    try file.writeStreamingAll(
        testing.io,
        "#!/bin/sh\necho run >> \"$5.runs\"\nwhile read -r there; do echo \"$there\"; done\n",
    );
    file.close(testing.io);
    var buffers: [2][64]u8 = undefined;
    const program =
        try std.mem.print(&buffers[0], ".zig-cache/tmp/{s}/program", .{&tmp.sub_path});
    const store = try std.mem.print(&buffers[1], ".zig-cache/tmp/{s}/store", .{&tmp.sub_path});
    const digits: [64]u8 = @splat('0');
    const size = 3 * Pieces.piece_size;
    const order: Order = .{
        .id = .fromRandom(@splat(1)),
        .kind = "fetch",
        .versionId = .fromRandom(@splat(2)),
        .differenceId = .fromRandom(@splat(3)),
        .differenceSizeBytes = size,
        .differenceListSha256 = &digits,
        .manifest = .{ .root = "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=", .counter = 1 },
    };
    const fetch = try testing.allocator.create(DifferenceFetch);
    fetch.* = .{
        .thread = .{ .context = undefined, .job_id = order.id },
        .difference_id = order.differenceId.?,
        .pieces = Pieces.of(size).?,
        .list_sha256 = @splat(0),
        .from_control_plane = false,
    };
    fetch.thread.context.gpa = testing.allocator;
    fetch.thread.context.store_path = store;
    var jobs: DifferenceJobs = .{ .running = .{ .fetch = fetch } };
    jobs.importAhead(program, &order);
    try testing.expect(jobs.ahead == null and !jobs.is_behind);
    fetch.leading_bytes.store(Pieces.piece_size, .release);
    for (0..2) |_| jobs.importAhead(program, &order);
    var child = jobs.takeAhead().?;
    var lines: Lines = .{};
    readAll(&child, &lines);
    try testing.expectEqual(0, child.finish().?);
    try testing.expectEqualStrings("4194304|12582912|", lines.text[0..lines.count]);

    // One of which the input ends ends, too.
    jobs.importAhead(program, &order);
    sys.close(jobs.ahead.?.said_fd);
    jobs.ahead.?.said_fd = -1;
    while (jobs.ahead != null) jobs.importAhead(program, &order);
    for (0..2) |_| jobs.importAhead(program, &order);
    try testing.expect(jobs.takeAhead() == null);
    var text: [64]u8 = undefined;
    const runs = try tmp.dir.readFile(testing.io, "store.runs", &text);
    try testing.expectEqualStrings("run\nrun\n", runs);
    fetch.thread.state.store(.failed, .release);
    try testing.expect(jobs.take().end.outcome == .failed);
}

const Lines = struct {
    text: [256]u8 = undefined,
    count: usize = 0,

    fn take(lines: *Lines, line: []const u8) void {
        for ([_][]const u8{ line, "|" }) |part| {
            @memcpy(lines.text[lines.count..][0..part.len], part);
            lines.count += part.len;
        }
    }
};

fn readAll(child: *StoreChild, lines: *Lines) void {
    while (true) {
        var polled = [_]std.os.linux.pollfd{
            .{ .fd = child.output_fd, .events = std.os.linux.POLL.IN, .revents = 0 },
        };
        _ = std.os.linux.ppoll(&polled, 1, null, null);
        if (child.read(lines, Lines.take) == .over) return;
    }
}
