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
const TransferThread = @import("transfer_thread.zig");
const assert = std.debug.assert;
const difference_order = core.uplink.difference_order;
const messageOf = core.uplink.store_job.messageOf;
const Message = core.uplink.store_job.Message;
const Order = core.uplink.store_job.Order;

pub const DifferenceJobs = @This();

running: ?Transfer = null,
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
        .failed => .{ .failed = thread.message },
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
