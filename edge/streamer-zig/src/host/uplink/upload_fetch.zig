//! Fetches one upload from the control plane for an import (packages/proto/UPLINK.md, "Uploads"),
//! by ranges, into a file below the store's directory. A file that an earlier process left is
//! continued. A separate thread: nothing waits for it but the import. What was fetched is given to
//! the import only if it has the size and the SHA-256 of the job.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const file_system = @import("../files/file_system.zig");
const KeyRotation = @import("key_rotation.zig");
const UplinkClient = @import("client.zig");
const linux = std.os.linux;
const Io = std.Io;
const Download = core.update.Download;
const Message = core.uplink.store_job.Message;
const messageOf = core.uplink.store_job.messageOf;

pub const UploadFetch = @This();

const request_timeout_ms = 20_000;
/// Without a byte for so long, the control plane counts as gone.
const silence_max_ms = 60 * std.time.ms_per_min;
/// Space that stays free for devices' writes, beside the import itself.
const free_bytes_min = 256 << 20;
const wait_step_ms = 200;
/// Below the store's directory.
pub const folder = core.uplink.import_source.fetched_folder;

gpa: std.mem.Allocator,
options: Options,
/// Bytes that are there.
done_bytes: std.atomic.Value(u64) = .init(0),
state: std.atomic.Value(State) = .init(.running),
/// Set before `failed`.
why: Message = .empty,

const State = enum(u8) {
    running,
    /// Nobody waits for it any more: the thread frees it.
    abandoned,
    fetched,
    failed,
};

pub const Options = struct {
    io: Io,
    client_options: UplinkClient.Options,
    rotation: *KeyRotation,
    /// Becomes readable when the thread ends.
    wake_fd: i32,
    /// Outlives the fetch.
    store_path: []const u8,
    job_id: base.Uuid,
    upload_id: base.Uuid,
    size: u64,
    sha256: [32]u8,
};

pub const Outcome = union(enum) { running, fetched, failed: Message };

pub fn start(gpa: std.mem.Allocator, options: Options) !*UploadFetch {
    const fetch = try gpa.create(UploadFetch);
    errdefer gpa.destroy(fetch);
    fetch.* = .{ .gpa = gpa, .options = options };
    const thread = try std.Thread.spawn(.{ .stack_size = 2 << 20 }, run, .{fetch});
    thread.detach();
    return fetch;
}

pub fn outcome(fetch: *const UploadFetch) Outcome {
    return switch (fetch.state.load(.acquire)) {
        .running => .running,
        .fetched => .fetched,
        .failed => .{ .failed = fetch.why },
        .abandoned => unreachable,
    };
}

/// Ends the use of it by its owner. A thread that still runs ends after its request.
pub fn release(fetch: *UploadFetch) void {
    if (fetch.state.cmpxchgStrong(.running, .abandoned, .acq_rel, .acquire) == null) return;
    fetch.gpa.destroy(fetch);
}

fn run(fetch: *UploadFetch) void {
    const wake_fd = fetch.options.wake_fd;
    const end: State = if (fetch.receive()) .fetched else |_| .failed;
    if (fetch.state.cmpxchgStrong(.running, end, .acq_rel, .acquire) != null)
        return fetch.gpa.destroy(fetch);
    sys.wake(wake_fd);
}

const Failed = error{Failed};

fn fail(fetch: *UploadFetch, comptime format: []const u8, values: anytype) Failed {
    var buffer: [512]u8 = undefined;
    fetch.why = messageOf(std.mem.print(&buffer, format, values) catch "The fetch failed.");
    return error.Failed;
}

fn isAbandoned(fetch: *const UploadFetch) bool {
    return fetch.state.load(.acquire) == .abandoned;
}

fn receive(fetch: *UploadFetch) Failed!void {
    const fd = openFile(fetch.options.store_path, fetch.options.upload_id) catch
        return fetch.fail("The edge cannot write the upload below its store's directory.", .{});
    defer sys.close(fd);
    const buffer = fetch.gpa.alloc(u8, Download.piece_size_max) catch
        return fetch.fail("The edge has too little memory to fetch the upload.", .{});
    defer fetch.gpa.free(buffer);
    const was_begun = sizeOf(fd) > 0;
    return fetch.receiveOnce(fd, buffer) catch |err| switch (err) {
        error.Failed => error.Failed,
        error.Differs => {
            // A power cut may have left a part that was never written.
            if (sys.check(linux.ftruncate(fd, 0))) |_| {} else |_| {}
            if (was_begun) fetch.receiveOnce(fd, buffer) catch |again| switch (again) {
                error.Failed => return error.Failed,
                error.Differs => return fetch.failDiffers(fd),
            } else return fetch.failDiffers(fd);
        },
    };
}

fn failDiffers(fetch: *UploadFetch, fd: i32) Failed {
    _ = linux.ftruncate(fd, 0);
    return fetch.fail(
        "The bytes that came from the control plane have another SHA-256 than the upload: upload the image again.",
        .{},
    );
}

fn receiveOnce(fetch: *UploadFetch, fd: i32, buffer: []u8) (Failed || error{Differs})!void {
    var hash: base.Sha256 = .init(.{});
    var size = try fetch.hashHeld(fd, buffer, &hash);
    try fetch.checkSpace(fd, size);
    var client: UplinkClient = .init(
        fetch.gpa,
        fetch.options.io,
        fetch.options.client_options,
    );
    defer client.deinit();
    var pieces: Download = .begin(fetch.options.size, nowMs());
    while (size < fetch.options.size) {
        const last = @min(size + pieces.piece_size, fetch.options.size) - 1;
        const range: UplinkClient.Range = .{ .first = size, .last = last };
        const bytes = try fetch.receivePiece(&client, &pieces, range, buffer);
        sys.writeAllAt(fd, bytes, size) catch return fetch.failWrite(fd);
        hash.update(bytes);
        size += bytes.len;
        fetch.done_bytes.store(size, .monotonic);
    }
    const digest = hash.finalResult();
    if (!std.mem.eql(u8, &digest, &fetch.options.sha256)) return error.Differs;
    _ = sys.check(linux.fsync(fd)) catch return fetch.failWrite(fd);
}

/// Reads what an earlier process has fetched.
fn hashHeld(fetch: *UploadFetch, fd: i32, buffer: []u8, hash: *base.Sha256) Failed!u64 {
    if (sizeOf(fd) > fetch.options.size) _ = linux.ftruncate(fd, 0);
    const held = sizeOf(fd);
    var size: u64 = 0;
    while (size < held) {
        if (fetch.isAbandoned()) return error.Failed;
        const part = buffer[0..@intCast(@min(buffer.len, held - size))];
        const count = sys.readAt(fd, part, size) catch 0;
        if (count == 0) return fetch.fail("The edge cannot read what it has fetched.", .{});
        hash.update(part[0..count]);
        size += count;
        fetch.done_bytes.store(size, .monotonic);
    }
    return size;
}

fn checkSpace(fetch: *UploadFetch, fd: i32, held: u64) Failed!void {
    const space = file_system.spaceOf(fd) catch return;
    const missing = fetch.options.size - held;
    if (space.available_bytes >= missing +| free_bytes_min) return;
    return fetch.fail(
        "The edge's disk has {d} MiB free, and fetching the upload needs {d} MiB: free space, then import it again.",
        .{ space.available_bytes >> 20, (missing +| free_bytes_min) >> 20 },
    );
}

fn failWrite(fetch: *UploadFetch, fd: i32) Failed {
    const space = file_system.spaceOf(fd) catch return fetch.fail("The edge's disk failed.", .{});
    if (space.available_bytes < Download.piece_size_max) return fetch.fail(
        "The edge's disk became full while it fetched the upload: free space, then import it again.",
        .{},
    );
    return fetch.fail("The edge's disk failed while it fetched the upload.", .{});
}

/// Asks until an answer comes, or for `silence_max_ms`.
fn receivePiece(
    fetch: *UploadFetch,
    client: *UplinkClient,
    pieces: *Download,
    range: UplinkClient.Range,
    buffer: []u8,
) Failed![]const u8 {
    const begin_ms = nowMs();
    var back_off: core.uplink.sender.BackOff = .{};
    var path_buffer: [64]u8 = undefined;
    const path = std.mem.print(
        &path_buffer,
        "/edge/v1/uploads/{f}",
        .{fetch.options.upload_id},
    ) catch unreachable;
    var last = range.last;
    while (nowMs() - begin_ms < silence_max_ms) {
        if (fetch.isAbandoned()) return error.Failed;
        client.key = fetch.options.rotation.key();
        const asked_ms = nowMs();
        const answer = client.requestEncoded(
            .GET,
            path,
            .{ .bytes = "", .range = .{ .first = range.first, .last = last } },
            request_timeout_ms,
            buffer,
        ) catch {
            _ = pieces.onNoAnswer();
            last = @min(last, range.first + pieces.piece_size - 1);
            back_off.fail(nowMs(), randomNumber());
            fetch.waitUntil(back_off.not_before_ms);
            continue;
        };
        switch (answer.status) {
            206 => if (answer.body.len > 0 and answer.body.len <= last - range.first + 1) {
                pieces.onPiece(nowMs() - asked_ms);
                return answer.body;
            } else return fetch.fail("The control plane sent another range than was asked.", .{}),
            404 => return fetch.fail(
                "The upload is gone from the control plane: it was deleted or has expired. Upload the image again.",
                .{},
            ),
            429, 500...599 => {
                const after_s = answer.retry_after_s orelse 1;
                back_off.wait(nowMs(), randomNumber(), after_s *| std.time.ms_per_s);
                fetch.waitUntil(back_off.not_before_ms);
            },
            else => return fetch.fail(
                "The control plane refused to send the upload (HTTP status {d}).",
                .{answer.status},
            ),
        }
    }
    return fetch.fail(
        "The control plane has not sent a byte of the upload for an hour: import it again.",
        .{},
    );
}

/// Returns early if nobody waits for the fetch any more.
fn waitUntil(fetch: *const UploadFetch, until_ms: u64) void {
    while (!fetch.isAbandoned()) {
        const left_ms = until_ms -| nowMs();
        if (left_ms == 0) return;
        const step: Io.Duration = .fromMilliseconds(@intCast(@min(left_ms, wait_step_ms)));
        fetch.options.io.sleep(step, .awake) catch return;
    }
}

/// Only its owner reads what will be an image.
fn openFile(store_path: []const u8, upload_id: base.Uuid) !i32 {
    var path_buffer: [core.uplink.store_job.Arguments.store_path_size_max + 128]u8 = undefined;
    for ([_][]const u8{ "imports", folder }) |name| {
        const path =
            try std.mem.printSentinel(&path_buffer, "{s}/{s}", .{ store_path, name }, 0);
        const errno = linux.errno(linux.mkdirat(linux.AT.FDCWD, path, 0o700));
        if (errno != .SUCCESS and errno != .EXIST) return error.SystemCallFailed;
    }
    const names = .{ store_path, folder, upload_id };
    const path = try std.mem.printSentinel(&path_buffer, "{s}/{s}/{f}", names, 0);
    const flags: linux.O =
        .{ .ACCMODE = .RDWR, .CREAT = true, .NOFOLLOW = true, .CLOEXEC = true };
    return @intCast(try sys.check(linux.openat(linux.AT.FDCWD, path, flags, 0o600)));
}

/// Removes what was fetched for no upload of the orders, such as those that were imported.
pub fn sweep(io: Io, store_path: []const u8, orders: []const core.uplink.store_job.Order) void {
    var path_buffer: [core.uplink.store_job.Arguments.store_path_size_max + 128]u8 = undefined;
    const path = std.mem.print(&path_buffer, "{s}/{s}", .{ store_path, folder }) catch unreachable;
    var dir = Io.Dir.cwd().openDir(io, path, .{ .iterate = true }) catch return;
    defer dir.close(io);
    var names = dir.iterate();
    while (names.next(io) catch return) |entry| {
        const id = base.Uuid.parse(entry.name) catch continue;
        if (!isOrdered(id, orders)) dir.deleteFile(io, entry.name) catch {};
    }
}

pub fn isOrdered(id: base.Uuid, orders: []const core.uplink.store_job.Order) bool {
    for (orders) |*order| if (order.uploadId) |wanted| if (wanted.eql(id)) return true;
    return false;
}

fn sizeOf(fd: i32) u64 {
    var stat: linux.Statx = undefined;
    const rc = linux.statx(fd, "", linux.AT.EMPTY_PATH, .{ .SIZE = true }, &stat);
    _ = sys.check(rc) catch return 0;
    return stat.size;
}

fn nowMs() u64 {
    return sys.monotonicUs() / std.time.us_per_ms;
}

fn randomNumber() u64 {
    var bytes: [8]u8 = undefined;
    sys.random(&bytes);
    return std.mem.readInt(u64, &bytes, .little);
}
