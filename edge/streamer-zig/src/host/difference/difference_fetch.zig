//! Fetches one difference for a job `fetch`: each missing piece from where the plan says
//! (core/difference/fetch_plan.zig), into a file below the store's directory. What an earlier
//! process has fetched counts after it was compared with the list. A separate thread: nothing waits
//! for it but the job.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const ControlPlaneSource = @import("control_plane_source.zig");
const DifferenceFiles = @import("difference_files.zig");
const PeerSource = @import("peer_source.zig");
const TransferThread = @import("transfer_thread.zig");
const linux = std.os.linux;
const FetchPlan = core.difference.FetchPlan;
const Pieces = core.difference.Pieces;
const Failed = TransferThread.Failed;
const nowMs = TransferThread.nowMs;

pub const DifferenceFetch = @This();

thread: TransferThread,
difference_id: base.Uuid,
pieces: Pieces,
list_sha256: [32]u8,
/// Other edges of the site, as the plan numbers them.
edges: base.BoundedArray(base.Uuid, FetchPlan.peers_max) = .empty,
from_control_plane: bool,
files: DifferenceFiles = undefined,
plan: FetchPlan = undefined,
/// Memory of the list, of which pieces are there, and of one piece.
list: []u8 = &.{},
held: []bool = &.{},
piece: *[Pieces.piece_size]u8 = undefined,

pub fn start(
    context: TransferThread.Context,
    job_id: base.Uuid,
    order: *const core.uplink.difference_order.Fetch,
) !*DifferenceFetch {
    const fetch = try context.gpa.create(DifferenceFetch);
    errdefer context.gpa.destroy(fetch);
    fetch.* = .{
        .thread = .{
            .context = context,
            .job_id = job_id,
            .total_bytes = .init(order.pieces.size),
        },
        .difference_id = order.difference_id,
        .pieces = order.pieces,
        .list_sha256 = order.list_sha256,
        .from_control_plane = order.from_control_plane,
    };
    fetch.thread.setRate(order.bytes_per_s);
    if (context.peers != null) for (order.sources) |id| {
        if (context.client_options.edge_id) |own| if (own.eql(id)) continue;
        fetch.edges.append(id) catch break;
    };
    try TransferThread.start(DifferenceFetch, fetch);
    return fetch;
}

pub fn destroy(fetch: *DifferenceFetch) void {
    fetch.thread.context.gpa.destroy(fetch);
}

/// Runs in the thread.
pub fn work(fetch: *DifferenceFetch) Failed!void {
    const gpa = fetch.thread.context.gpa;
    fetch.files = DifferenceFiles.open(fetch.thread.context.store_path) catch
        return fetch.thread.fail(
            "The edge cannot write differences below its store's directory.",
            .{},
        );
    defer fetch.files.close();
    const memory = struct {
        fn missing(thread: *TransferThread) Failed {
            return thread.fail("The edge has too little memory to fetch the difference.", .{});
        }
    };
    fetch.list = gpa.alloc(u8, fetch.pieces.listSize()) catch
        return memory.missing(&fetch.thread);
    defer gpa.free(fetch.list);
    fetch.held = gpa.alloc(bool, fetch.pieces.count()) catch
        return memory.missing(&fetch.thread);
    defer gpa.free(fetch.held);
    fetch.piece = gpa.create([Pieces.piece_size]u8) catch
        return memory.missing(&fetch.thread);
    defer gpa.destroy(fetch.piece);
    fetch.plan = .init(.{
        .pieces = fetch.pieces,
        .held = fetch.held,
        .peer_count = @intCast(fetch.edges.count),
        .from_control_plane = fetch.from_control_plane,
    }, nowMs());
    if (fetch.files.readList(fetch.difference_id, fetch.list)) |list|
        if (fetch.pieces.isList(list, &fetch.list_sha256)) fetch.plan.onListHeld();
    return fetch.receive();
}

fn receive(fetch: *DifferenceFetch) Failed!void {
    const fd = fetch.files.openToWrite(fetch.difference_id) catch
        return fetch.thread.fail(
            "The edge cannot write differences below its store's directory.",
            .{},
        );
    defer sys.close(fd);
    if (DifferenceFiles.sizeOf(fd) > fetch.pieces.size) _ = linux.ftruncate(fd, 0);
    if (fetch.plan.has_list) try fetch.countHeld(fd);
    try fetch.checkSpace();
    var control_plane: ControlPlaneSource = .init(&fetch.thread);
    defer control_plane.deinit();
    const edges: ?*PeerSource = if (fetch.thread.context.peers) |peers| blk: {
        const source = fetch.thread.context.gpa.create(PeerSource) catch
            return fetch.thread.fail("The edge has too little memory to fetch.", .{});
        source.* = .{ .thread = &fetch.thread, .peers = peers };
        break :blk source;
    } else null;
    defer if (edges) |source| {
        source.deinit();
        fetch.thread.context.gpa.destroy(source);
    };
    while (true) {
        if (fetch.thread.isAbandoned()) return error.Failed;
        const step = fetch.plan.next(nowMs());
        switch (step) {
            .complete => break,
            .failed => {
                fetch.thread.message = fetch.plan.failure(fetch.edges.constSlice());
                return error.Failed;
            },
            .wait_until_ms => |until_ms| fetch.thread.waitUntil(until_ms),
            .list, .piece => try fetch.ask(step, .{
                .control_plane = &control_plane,
                .edges = edges,
            }, fd),
        }
    }
    fetch.files.finish(fetch.difference_id, fd) catch return fetch.failWrite();
    fetch.thread.message = fetch.plan.liars(fetch.edges.constSlice());
}

const Sources = struct { control_plane: *ControlPlaneSource, edges: ?*PeerSource };

fn ask(fetch: *DifferenceFetch, step: FetchPlan.Step, sources: Sources, fd: i32) Failed!void {
    var outcome: FetchPlan.Outcome = undefined;
    switch (step) {
        .list => |source| {
            outcome = fetch.getList(sources, source);
            if (outcome == .taken) {
                if (fetch.pieces.isList(fetch.list, &fetch.list_sha256))
                    fetch.files.writeList(fetch.difference_id, fetch.list) catch
                        return fetch.failWrite()
                else
                    outcome = .wrong;
            }
        },
        .piece => |asked| {
            const bytes = fetch.piece[0..fetch.pieces.sizeOf(asked.index)];
            outcome = fetch.getPiece(sources, asked.source, asked.index, bytes);
            if (outcome == .taken) {
                if (fetch.pieces.isPiece(fetch.list, asked.index, bytes))
                    sys.writeAllAt(fd, bytes, fetch.pieces.offsetOf(asked.index)) catch
                        return fetch.failWrite()
                else
                    outcome = .wrong;
            }
        },
        .wait_until_ms, .complete, .failed => unreachable,
    }
    fetch.plan.onOutcome(step, outcome, nowMs());
    fetch.tellProgress();
}

fn getList(fetch: *DifferenceFetch, sources: Sources, source: u8) FetchPlan.Outcome {
    const id = fetch.difference_id;
    if (source == FetchPlan.control_plane) return sources.control_plane.getList(id, fetch.list);
    const edge = fetch.edges.constSlice()[source];
    return sources.edges.?.get(edge, .{ .list = id }, fetch.list);
}

fn getPiece(
    fetch: *DifferenceFetch,
    sources: Sources,
    source: u8,
    index: u32,
    bytes: []u8,
) FetchPlan.Outcome {
    const id = fetch.difference_id;
    if (source == FetchPlan.control_plane)
        return sources.control_plane.getPiece(id, index, bytes);
    const edge = fetch.edges.constSlice()[source];
    return sources.edges.?.get(edge, .{
        .piece = .{ .difference = id, .index = index },
    }, bytes);
}

fn tellProgress(fetch: *DifferenceFetch) void {
    fetch.thread.done_bytes.store(fetch.plan.doneBytes(), .monotonic);
}

/// Reads what an earlier process has fetched.
fn countHeld(fetch: *DifferenceFetch, fd: i32) Failed!void {
    for (0..fetch.pieces.count()) |number| {
        if (fetch.thread.isAbandoned()) return error.Failed;
        const index: u32 = @intCast(number);
        // Beyond the end of the file nothing was written.
        if (fetch.pieces.offsetOf(index) >= DifferenceFiles.sizeOf(fd)) return;
        const found =
            DifferenceFiles.readPiece(fd, fetch.pieces, fetch.list, index, fetch.piece);
        if (found == null) continue;
        fetch.plan.onHeld(index);
        fetch.tellProgress();
    }
}

fn checkSpace(fetch: *DifferenceFetch) Failed!void {
    const available = fetch.files.availableBytes() orelse return;
    const missing = fetch.pieces.size - fetch.plan.doneBytes();
    if (available >= missing +| DifferenceFiles.free_bytes_min) return;
    return fetch.thread.fail(
        "The edge's disk has {d} MiB free, and fetching the difference needs {d} MiB: free space.",
        .{ available >> 20, (missing +| DifferenceFiles.free_bytes_min) >> 20 },
    );
}

fn failWrite(fetch: *DifferenceFetch) Failed {
    const available = fetch.files.availableBytes() orelse 0;
    if (available < Pieces.piece_size) return fetch.thread.fail(
        "The edge's disk became full while it fetched the difference: free space.",
        .{},
    );
    return fetch.thread.fail("The edge's disk failed while it fetched the difference.", .{});
}

test {
    _ = @import("difference_fetch_test.zig");
}
