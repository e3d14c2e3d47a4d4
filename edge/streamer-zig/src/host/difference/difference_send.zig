//! Sends a difference that `vdisk pack` has made to the control plane
//! (core/difference/send_plan.zig), and describes it for the job's report. Every piece is compared
//! with the list first. A separate thread: nothing waits for it but the job.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const DifferenceFiles = @import("difference_files.zig");
const TransferThread = @import("transfer_thread.zig");
const UplinkClient = @import("../uplink/client.zig");
const Pieces = core.difference.Pieces;
const SendPlan = core.difference.SendPlan;
const Failed = TransferThread.Failed;
const Packed = core.uplink.difference_order.Packed;
const nowMs = TransferThread.nowMs;

pub const DifferenceSend = @This();

/// A piece comes over a line of 140 kbit/s in time.
const piece_timeout_ms = 240_000;
const request_timeout_ms = 30_000;

thread: TransferThread,
difference_id: base.Uuid,
to_control_plane: bool,
rate: core.difference.RateLimit = .{},
/// Set before the end.
made: ?Packed = null,
list_memory: []u8 = &.{},
list: []const u8 = &.{},
piece: *[Pieces.piece_size]u8 = undefined,

pub fn start(
    context: TransferThread.Context,
    job_id: base.Uuid,
    order: *const core.uplink.difference_order.Pack,
) !*DifferenceSend {
    const send = try context.gpa.create(DifferenceSend);
    errdefer context.gpa.destroy(send);
    send.* = .{
        .thread = .{ .context = context, .job_id = job_id },
        .difference_id = order.difference_id,
        .to_control_plane = order.to_control_plane,
    };
    send.thread.setRate(order.bytes_per_s);
    try TransferThread.start(DifferenceSend, send);
    return send;
}

pub fn destroy(send: *DifferenceSend) void {
    send.thread.context.gpa.destroy(send);
}

/// Runs in the thread. Without a whole difference, `made` stays null.
pub fn work(send: *DifferenceSend) Failed!void {
    const gpa = send.thread.context.gpa;
    var files = DifferenceFiles.open(send.thread.context.store_path) catch
        return send.failRead();
    defer files.close();
    send.list_memory = gpa.alloc(u8, Pieces.list_size_max) catch return send.failMemory();
    defer gpa.free(send.list_memory);
    send.piece = gpa.create([Pieces.piece_size]u8) catch return send.failMemory();
    defer gpa.destroy(send.piece);
    send.list = files.readList(send.difference_id, send.list_memory) orelse
        return send.failRead();
    const fd = files.openWhole(send.difference_id) catch return send.failRead();
    defer sys.close(fd);
    const pieces = Pieces.of(DifferenceFiles.sizeOf(fd)) orelse return send.failSize(&files);
    if (pieces.listSize() != send.list.len) return send.failSize(&files);
    send.thread.total_bytes.store(pieces.size, .monotonic);
    try send.verify(&files, pieces, fd);
    send.made = .{ .size = pieces.size, .list_sha256 = Pieces.digestOf(send.list) };
    if (send.to_control_plane) try send.sendAll(pieces, fd);
}

fn failRead(send: *DifferenceSend) Failed {
    return send.thread.fail("The edge cannot read the difference that it has packed.", .{});
}

fn failMemory(send: *DifferenceSend) Failed {
    return send.thread.fail("The edge has too little memory to send the difference.", .{});
}

/// It is packed again by the next job.
fn failSize(send: *DifferenceSend, files: *const DifferenceFiles) Failed {
    files.remove(send.difference_id);
    return send.thread.fail("The edge's file of the difference differs from its list.", .{});
}

fn verify(
    send: *DifferenceSend,
    files: *const DifferenceFiles,
    pieces: Pieces,
    fd: i32,
) Failed!void {
    for (0..pieces.count()) |number| {
        if (send.thread.isAbandoned()) return error.Failed;
        const index: u32 = @intCast(number);
        if (DifferenceFiles.readPiece(fd, pieces, send.list, index, send.piece) == null)
            return send.failSize(files);
    }
}

fn sendAll(send: *DifferenceSend, pieces: Pieces, fd: i32) Failed!void {
    const context = &send.thread.context;
    var client: UplinkClient = .init(context.gpa, context.io, context.client_options);
    defer client.deinit();
    var plan: SendPlan = .init(pieces, nowMs());
    while (true) {
        if (send.thread.isAbandoned()) return error.Failed;
        client.key = context.rotation.key();
        switch (plan.next(nowMs())) {
            .complete => break,
            .failed => {
                send.thread.message = plan.why;
                return error.Failed;
            },
            .wait_until_ms => |until_ms| send.thread.waitUntil(until_ms),
            .list => send.sendList(&client, &plan),
            .ask => send.askMissing(&client, &plan),
            .piece => |index| try send.sendPiece(&client, &plan, index, fd),
        }
    }
    send.thread.done_bytes.store(pieces.size, .monotonic);
}

fn sendList(send: *DifferenceSend, client: *UplinkClient, plan: *SendPlan) void {
    var path: [128]u8 = undefined;
    const names = .{ send.difference_id, plan.pieces.size };
    put(client, plan, std.mem.print(
        &path,
        "/edge/v1/differences/{f}/list?sizeBytes={d}",
        names,
    ) catch unreachable, send.list);
}

fn sendPiece(
    send: *DifferenceSend,
    client: *UplinkClient,
    plan: *SendPlan,
    index: u32,
    fd: i32,
) Failed!void {
    const pieces = plan.pieces;
    const bytes = DifferenceFiles.readPiece(fd, pieces, send.list, index, send.piece) orelse
        return send.failRead();
    send.thread.waitForRate(&send.rate);
    if (send.thread.isAbandoned()) return error.Failed;
    send.rate.spend(bytes.len, sys.monotonicUs());
    send.thread.count(.to_control_plane, bytes.len);
    var path: [128]u8 = undefined;
    const names = .{ send.difference_id, index };
    put(
        client,
        plan,
        std.mem.print(&path, "/edge/v1/differences/{f}/pieces/{d}", names) catch unreachable,
        bytes,
    );
    // Pieces that the control plane had already count, too: they come first.
    const offset = pieces.offsetOf(index);
    send.thread.done_bytes.store(offset, .monotonic);
}

fn put(
    client: *UplinkClient,
    plan: *SendPlan,
    path: []const u8,
    bytes: []const u8,
) void {
    var buffer: [4096]u8 = undefined;
    const body: UplinkClient.Body = .{ .bytes = bytes, .content_type = "application/octet-stream" };
    if (client.requestEncoded(.PUT, path, body, piece_timeout_ms, &buffer)) |answer|
        plan.onAnswer(answer.status, answered(answer.retry_after_s))
    else |_|
        plan.onAnswer(null, answered(null));
}

fn askMissing(send: *DifferenceSend, client: *UplinkClient, plan: *SendPlan) void {
    var path_buffer: [96]u8 = undefined;
    const path = std.mem.print(
        &path_buffer,
        "/edge/v1/differences/{f}/missing",
        .{send.difference_id},
    ) catch unreachable;
    var buffer: [16 * 1024]u8 = undefined;
    const answer = client.request(.GET, path, "", request_timeout_ms, &buffer) catch
        return plan.onMissing(null, null, answered(null));
    const Missing = struct { missing: []const u32 };
    var memory: [32 * 1024]u8 = undefined;
    var fixed: std.heap.FixedBufferAllocator = .init(&memory);
    const missing: ?[]const u32 =
        if (core.uplink.message.parse(Missing, fixed.allocator(), answer.body)) |said|
            said.missing
        else |_|
            null;
    plan.onMissing(missing, answer.status, answered(answer.retry_after_s));
}

fn answered(retry_after_s: ?u32) SendPlan.Answered {
    return .{
        .now_ms = nowMs(),
        .random = TransferThread.randomNumber(),
        .retry_after_s = retry_after_s,
    };
}
