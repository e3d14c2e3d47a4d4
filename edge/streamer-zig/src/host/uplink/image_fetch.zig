//! Fetches the image of an import by ranges into a file below the store's directory: an upload from
//! the control plane (packages/proto/UPLINK.md, "Uploads") or what is at a URL. What an earlier
//! process has left of it is continued. core/uplink/image_fetch.zig decides, this asks, writes
//! and hashes. A separate thread: nothing waits for it but the import.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const file_system = @import("../files/file_system.zig");
const KeptFetch = @import("kept_fetch.zig");
const KeyRotation = @import("key_rotation.zig");
const Line = @import("image_line.zig");
const UplinkClient = @import("client.zig");
const Failure = @import("transport_failure.zig").Failure;
const linux = std.os.linux;
const Io = std.Io;
const Download = core.update.Download;
const Plan = core.uplink.ImageFetch;
const Message = core.uplink.store_job.Message;
const messageOf = core.uplink.store_job.messageOf;

pub const ImageFetch = @This();

const wait_step_ms = 200;
/// Below the store's directory.
pub const folder = core.uplink.import_source.fetched_folder;

gpa: std.mem.Allocator,
options: Options,
/// Bytes that are there.
done_bytes: std.atomic.Value(u64) = .init(0),
/// 0: not known yet.
size_bytes: std.atomic.Value(u64) = .init(0),
state: std.atomic.Value(State) = .init(.running),
/// Set before `failed`.
why: Message = .empty,
url_buffer: [core.uplink.ImportUrl.size_max]u8 = undefined,
/// Where the file is; of its thread.
folder_path: []const u8 = "",
/// Of a URL: bytes that a later process may count on; of its thread.
durable_bytes: u64 = 0,

const State = enum(u8) {
    running,
    /// Nobody waits for it any more: the thread frees it.
    abandoned,
    fetched,
    failed,
};

pub const Options = Line.Options;

pub const Outcome = union(enum) { running, fetched, failed: Message };

pub fn start(gpa: std.mem.Allocator, options: Options) !*ImageFetch {
    const fetch = try gpa.create(ImageFetch);
    errdefer gpa.destroy(fetch);
    fetch.* = .{ .gpa = gpa, .options = options };
    // The order that it comes from may be replaced.
    switch (options.source) {
        .upload => {},
        .url => |text| {
            @memcpy(fetch.url_buffer[0..text.len], text);
            fetch.options.source = .{ .url = fetch.url_buffer[0..text.len] };
        },
    }
    const thread = try std.Thread.spawn(.{ .stack_size = 2 << 20 }, run, .{fetch});
    thread.detach();
    return fetch;
}

pub fn outcome(fetch: *const ImageFetch) Outcome {
    return switch (fetch.state.load(.acquire)) {
        .running => .running,
        .fetched => .fetched,
        .failed => .{ .failed = fetch.why },
        .abandoned => unreachable,
    };
}

/// 0: not known yet.
pub fn sizeBytes(fetch: *const ImageFetch) u64 {
    return fetch.options.size orelse fetch.size_bytes.load(.monotonic);
}

/// What it does, for a person.
pub fn note(fetch: *const ImageFetch) Message {
    return messageOf(switch (fetch.options.source) {
        .upload => "fetching the upload from the control plane",
        .url => "fetching the image from its URL",
    });
}

/// Ends the use of it by its owner. A thread that still runs ends after its request.
pub fn release(fetch: *ImageFetch) void {
    if (fetch.state.cmpxchgStrong(.running, .abandoned, .acq_rel, .acquire) == null) return;
    fetch.gpa.destroy(fetch);
}

fn run(fetch: *ImageFetch) void {
    const wake_fd = fetch.options.wake_fd;
    const end: State = if (fetch.receive()) .fetched else |_| .failed;
    if (fetch.state.cmpxchgStrong(.running, end, .acq_rel, .acquire) != null)
        return fetch.gpa.destroy(fetch);
    sys.wake(wake_fd);
}

const Failed = error{Failed};

fn fail(fetch: *ImageFetch, comptime format: []const u8, values: anytype) Failed {
    var buffer: [512]u8 = undefined;
    fetch.why = messageOf(std.mem.print(&buffer, format, values) catch "The fetch failed.");
    return error.Failed;
}

fn isAbandoned(fetch: *const ImageFetch) bool {
    return fetch.state.load(.acquire) == .abandoned;
}

fn receive(fetch: *ImageFetch) Failed!void {
    const fd = openFile(fetch.options.store_path, fetch.options.file_id) catch
        return fetch.fail("The edge cannot write the image below its store's directory.", .{});
    defer sys.close(fd);
    const buffer = fetch.gpa.alloc(u8, Download.piece_size_max) catch
        return fetch.fail("The edge has too little memory to fetch the image.", .{});
    defer fetch.gpa.free(buffer);
    var folder_buffer: [core.uplink.store_job.Arguments.store_path_size_max + 128]u8 = undefined;
    fetch.folder_path = std.mem.print(&folder_buffer, "{s}/{s}", .{
        fetch.options.store_path, folder,
    }) catch unreachable;
    var plan = fetch.begin(fd);
    var line: Line = undefined;
    line.init(fetch.gpa, &fetch.options) catch
        return fetch.fail("The import names no URL which an edge fetches.", .{});
    defer line.deinit();
    while (true) switch (try fetch.receiveOnce(&plan, &line, fd, buffer)) {
        .done => return,
        .start_again => {},
        .failed => |problem| {
            _ = linux.ftruncate(fd, 0);
            return fetch.failWith(problem, &line, 0);
        },
    };
}

fn begin(fetch: *ImageFetch, fd: i32) Plan {
    const options = &fetch.options;
    const there = sizeOf(fd);
    if (options.source == .upload) return .begin(.{
        .source = .upload,
        .size = options.size,
        .sha256 = options.sha256,
        .held = there,
    }, nowMs());
    const kept = KeptFetch.read(options.io, fetch.folder_path, options.file_id);
    fetch.durable_bytes = if (kept) |known| @min(known.durable, there) else 0;
    return .begin(.{
        .source = .url,
        .size = if (kept) |known| known.size else null,
        .sha256 = options.sha256,
        .held = fetch.durable_bytes,
        .validator = if (kept) |known| known.validator else .empty,
    }, nowMs());
}

/// Notes from time to time what a later process may continue from. Without it that one starts
/// again, so that a failure is none of the fetch.
fn keep(fetch: *ImageFetch, plan: *const Plan, fd: i32) void {
    if (plan.source != .url or plan.validator.count == 0) return;
    const is_due = plan.held -| fetch.durable_bytes >= KeptFetch.interval_bytes;
    if (!is_due and plan.next() != null) return;
    const kept: KeptFetch = .{
        .size = plan.size.?,
        .durable = plan.held,
        .validator = plan.validator,
    };
    kept.write(fetch.options.io, fetch.folder_path, fetch.options.file_id, fd) catch return;
    fetch.durable_bytes = plan.held;
}

/// From what the file has to the last byte.
fn receiveOnce(
    fetch: *ImageFetch,
    plan: *Plan,
    line: *Line,
    fd: i32,
    buffer: []u8,
) Failed!Plan.End {
    if (plan.held == 0) {
        fetch.durable_bytes = 0;
        KeptFetch.remove(fetch.options.io, fetch.folder_path, fetch.options.file_id);
    }
    _ = sys.check(linux.ftruncate(fd, @intCast(plan.held))) catch return fetch.failWrite(fd);
    if (plan.size) |size| fetch.size_bytes.store(size, .monotonic);
    var hash: base.Sha256 = .init(.{});
    try fetch.hashHeld(fd, plan.held, buffer, &hash);
    var is_space_known = false;
    while (plan.next()) |range| {
        const bytes = try fetch.receivePiece(plan, line, range, buffer) orelse return .start_again;
        if (!is_space_known) try fetch.checkSpace(plan, fd, bytes.len);
        is_space_known = true;
        sys.writeAllAt(fd, bytes, range.first) catch return fetch.failWrite(fd);
        hash.update(bytes);
        fetch.done_bytes.store(plan.held, .monotonic);
        fetch.size_bytes.store(plan.size.?, .monotonic);
        fetch.keep(plan, fd);
    }
    const digest = hash.finalResult();
    const end = plan.onEnd(&digest);
    if (end == .done) _ = sys.check(linux.fsync(fd)) catch return fetch.failWrite(fd);
    return end;
}

/// Reads what an earlier process has fetched.
fn hashHeld(
    fetch: *ImageFetch,
    fd: i32,
    held: u64,
    buffer: []u8,
    hash: *base.Sha256,
) Failed!void {
    var size: u64 = 0;
    fetch.done_bytes.store(0, .monotonic);
    while (size < held) {
        if (fetch.isAbandoned()) return error.Failed;
        const part = buffer[0..@intCast(@min(buffer.len, held - size))];
        const count = sys.readAt(fd, part, size) catch 0;
        if (count == 0) return fetch.fail("The edge cannot read what it has fetched.", .{});
        hash.update(part[0..count]);
        size += count;
        fetch.done_bytes.store(size, .monotonic);
    }
}

/// `unwritten_bytes`: those of `held` that are not on the disk yet.
fn checkSpace(
    fetch: *ImageFetch,
    plan: *const Plan,
    fd: i32,
    unwritten_bytes: u64,
) Failed!void {
    const space = file_system.spaceOf(fd) catch return;
    const needed = plan.spaceNeeded(space.available_bytes -| unwritten_bytes) orelse return;
    return fetch.fail(
        "The edge's disk has {d} MiB free, and fetching the image needs {d} MiB: free space, then import it again.",
        .{ space.available_bytes >> 20, (needed +| unwritten_bytes) >> 20 },
    );
}

fn failWrite(fetch: *ImageFetch, fd: i32) Failed {
    const space = file_system.spaceOf(fd) catch return fetch.fail("The edge's disk failed.", .{});
    if (space.available_bytes < Download.piece_size_max) return fetch.fail(
        "The edge's disk became full while it fetched the image: free space, then import it again.",
        .{},
    );
    return fetch.fail("The edge's disk failed while it fetched the image.", .{});
}

/// Asks until an answer comes, or until the source counts as gone. Null: start again.
fn receivePiece(
    fetch: *ImageFetch,
    plan: *Plan,
    line: *Line,
    first_range: Plan.Range,
    buffer: []u8,
) Failed!?[]const u8 {
    var range = first_range;
    while (true) {
        if (fetch.isAbandoned()) return error.Failed;
        const asked_ms = nowMs();
        const got = line.ask(range, plan.validator.constSlice(), buffer) catch {
            if (line.finalProblem(plan)) |failure| return fetch.failReach(line, failure);
            const until_ms = plan.onNoAnswer(nowMs(), randomNumber()) orelse
                return fetch.failWith(.silent, line, 0);
            fetch.waitUntil(until_ms);
            range = plan.next().?;
            continue;
        };
        const clock: Plan.Clock = .{
            .now_ms = nowMs(),
            .took_ms = nowMs() - asked_ms,
            .random = randomNumber(),
        };
        switch (plan.onAnswer(range, got.answer, clock)) {
            .take => return got.body,
            .start_again => return null,
            .wait_until_ms => |until_ms| fetch.waitUntil(until_ms),
            .redirect => line.redirect() catch |err| return fetch.failRedirect(line, err),
            .failed => |problem| return fetch.failWith(problem, line, got.answer.status),
        }
        range = plan.next().?;
    }
}

fn failRedirect(fetch: *ImageFetch, line: *const Line, err: Line.RedirectError) Failed {
    return fetch.fail("{s} leads to another address that {s}.", .{
        line.name(),
        switch (err) {
            error.TooMany => "leads on again and again",
            error.LosesTls => "is not encrypted, though the URL is",
            else => "is no URL which an edge fetches",
        },
    });
}

fn failReach(fetch: *ImageFetch, line: *const Line, failure: Failure) Failed {
    const transport = line.transport();
    if (failure == .address_refused) if (transport.refused) |refused| return fetch.fail(
        "{s} is at {s}, {s}: this edge may not fetch from there. Its option --import-from says from where it may.",
        .{ line.name(), AddressText.of(refused.address).slice(), refused.why.sentence() },
    );
    return fetch.fail("{s} cannot be reached: {s}.", .{ line.name(), failure.sentence() });
}

const AddressText = struct {
    buffer: [64]u8,
    size: usize,

    fn of(address: std.Io.net.IpAddress) AddressText {
        var text: AddressText = .{ .buffer = undefined, .size = 0 };
        // The longest address with its port fits.
        const written = std.mem.print(&text.buffer, "{f}", .{address}) catch return text;
        text.size = written.len;
        return text;
    }

    fn slice(text: *const AddressText) []const u8 {
        return text.buffer[0..text.size];
    }
};

fn failWith(fetch: *ImageFetch, problem: Plan.Problem, line: *const Line, status: u16) Failed {
    const name = line.name();
    const is_upload = fetch.options.source == .upload;
    return switch (problem) {
        .upload_gone => fetch.fail(
            "The upload is gone from the control plane: it was deleted or has expired. Upload the image again.",
            .{},
        ),
        .url_gone => fetch.fail(
            "{s} has no such file (HTTP status {d}): check the URL.",
            .{ name, status },
        ),
        .refused => fetch.fail(
            "{s} refused to send the image (HTTP status {d}).",
            .{ name, status },
        ),
        .no_ranges => fetch.fail(
            "{s} sends files only as a whole, without HTTP ranges, so that nothing could continue after a cut: upload the image, or put it on another server.",
            .{name},
        ),
        .other_range => fetch.fail("{s} sent another range than was asked.", .{name}),
        .too_large => fetch.fail("The image at {s} is larger than any disk.", .{name}),
        .empty => fetch.fail("The file at {s} is empty.", .{name}),
        .changes => fetch.fail(
            "The file at {s} changes again and again while it is fetched: import it when it is complete.",
            .{name},
        ),
        .silent => fetch.fail(
            "{s} has not sent a byte of the image for an hour: import it again.",
            .{name},
        ),
        .other_bytes => if (is_upload) fetch.fail(
            "The bytes that came from the control plane have another SHA-256 than the upload: upload the image again.",
            .{},
        ) else fetch.fail(
            "The bytes that came from {s} have another SHA-256 than the import names: check both.",
            .{name},
        ),
    };
}

/// Returns early if nobody waits for the fetch any more.
fn waitUntil(fetch: *const ImageFetch, until_ms: u64) void {
    while (!fetch.isAbandoned()) {
        const left_ms = until_ms -| nowMs();
        if (left_ms == 0) return;
        const step: Io.Duration = .fromMilliseconds(@intCast(@min(left_ms, wait_step_ms)));
        fetch.options.io.sleep(step, .awake) catch return;
    }
}

/// Only its owner reads what will be an image.
fn openFile(store_path: []const u8, file_id: base.Uuid) !i32 {
    var path_buffer: [core.uplink.store_job.Arguments.store_path_size_max + 128]u8 = undefined;
    for ([_][]const u8{ "imports", folder }) |name| {
        const path =
            try std.mem.printSentinel(&path_buffer, "{s}/{s}", .{ store_path, name }, 0);
        const errno = linux.errno(linux.mkdirat(linux.AT.FDCWD, path, 0o700));
        if (errno != .SUCCESS and errno != .EXIST) return error.SystemCallFailed;
    }
    const names = .{ store_path, folder, file_id };
    const path = try std.mem.printSentinel(&path_buffer, "{s}/{s}/{f}", names, 0);
    const flags: linux.O =
        .{ .ACCMODE = .RDWR, .CREAT = true, .NOFOLLOW = true, .CLOEXEC = true };
    return @intCast(try sys.check(linux.openat(linux.AT.FDCWD, path, flags, 0o600)));
}

/// Removes what was fetched for none of the orders, such as what was imported.
pub fn sweep(io: Io, store_path: []const u8, orders: []const core.uplink.store_job.Order) void {
    var path_buffer: [core.uplink.store_job.Arguments.store_path_size_max + 128]u8 = undefined;
    const path = std.mem.print(&path_buffer, "{s}/{s}", .{ store_path, folder }) catch unreachable;
    var dir = Io.Dir.cwd().openDir(io, path, .{ .iterate = true }) catch return;
    defer dir.close(io);
    var names = dir.iterate();
    while (names.next(io) catch return) |entry| {
        const id = KeptFetch.idOf(entry.name) orelse continue;
        if (!isOrdered(id, orders)) dir.deleteFile(io, entry.name) catch {};
    }
}

pub fn isOrdered(id: base.Uuid, orders: []const core.uplink.store_job.Order) bool {
    for (orders) |*order| if (core.uplink.import_source.fileOf(order)) |wanted|
        if (wanted.eql(id)) return true;
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
