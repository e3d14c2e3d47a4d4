//! `bootfarm-edge vdisk caches copy`: brings the copies up to date that this edge offers of the
//! writes of its devices, for a second edge of the site to fetch
//! (docs/decisions/0088-copies-of-write-layers.md). The edge runs it on its schedule. Devices run
//! meanwhile: their layers come as snapshots.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const store_module = @import("store");
const cancel = @import("../cancel.zig");
const options_module = @import("../../options.zig");
const Call = @import("../subcommand.zig");
const EdgeSnapshot = @import("edge_snapshot.zig");
const output = @import("../output.zig");
const WriteOwner = @import("write_owner.zig");
const linux = std.os.linux;
const Uuid = base.Uuid;

const AreaList = store_module.AreaList;
const OwnCopy = store_module.OwnCopy;
const device_layers = store_module.device_layers;
const layer_file = store_module.layer_file;
const names = store_module.copy_names;

pub const Options = struct {
    data: ?[]const u8 = null,
    /// What copies leave free on the file system of the store.
    reserve: ?[]const u8 = null,
};

/// A change within the clock's step before a look at it may be missed by the next look.
const settled_ns = 2 * std.time.ns_per_s;

pub fn make(call: *const Call, options: *const Options, store_path: []const u8) Call.Error!u8 {
    var on = store_module.LinuxFiles.open(store_path) catch |err|
        return call.fail("The store directory {s} {s}.", .{
            store_path, store_module.files.sentence(err),
        });
    defer on.close();
    const reserve = if (options.reserve) |text|
        try options_module.parseReserve("--reserve", text, call.complaint)
    else
        null;
    var arena: std.heap.ArenaAllocator = .init(call.gpa);
    defer arena.deinit();
    const owner = try WriteOwner.load(call, arena.allocator(), store_path, options.data);
    const lock = names.lock(on.files(), .own) catch |err| return explainStore(call, err);
    defer if (lock) |handle| on.files().close(handle);
    if (lock == null)
        return call.failBusy("Another process makes copies; wait until it ends.", .{});
    cancel.listen();
    var run: Run = .{
        .call = call,
        .on = &on,
        .owner = if (owner) |*known| known else null,
        .reserve_bytes = reserve,
    };
    return run.all();
}

fn explainStore(call: *const Call, problem: store_module.files.Error) Call.Error {
    return call.fail("The copies cannot be written: the store {s}.", .{
        store_module.files.sentence(problem),
    });
}

/// `Canceled`: a signal. `Skipped`: a sentence was printed.
const Error = Call.Error || error{ Canceled, Skipped };

const Run = struct {
    call: *const Call,
    on: *store_module.LinuxFiles,
    owner: ?*const WriteOwner,
    /// Null: the usual.
    reserve_bytes: ?u64,
    copied: u32 = 0,
    unchanged: u32 = 0,
    failed: u32 = 0,
    changed_bytes: u64 = 0,

    fn all(run: *Run) Call.Error!u8 {
        const call, const files = .{ run.call, run.on.files() };
        var walk: device_layers.LayerIterator = .{ .files = files };
        while (walk.next() catch |err| return explainStore(call, err)) |found| {
            const layer = Uuid.parse(found.name) catch continue;
            const head = found.head catch {
                run.failed += 1;
                run.say(layer, "its head cannot be read");
                continue;
            };
            if (!run.isCopied(&head.binding)) continue;
            run.one(layer, &head) catch |err| switch (err) {
                error.Canceled => {
                    host.log.info("The copies were interrupted; run the command again.", .{});
                    return Call.exit_interrupted;
                },
                error.Skipped => run.failed += 1,
                error.Wrong, error.Busy, error.OutOfMemory => |other| return other,
            };
        }
        run.sweep() catch |err| return explainStore(call, err);
        call.print(
            .{
                .copied = run.copied,
                .unchanged = run.unchanged,
                .failed = run.failed,
                .changedBytes = run.changed_bytes,
            },
            "copied the writes of {d} devices, {f} of them new; {d} have not changed, {d} could not be copied",
            .{
                run.copied,
                output.Size{ .bytes = run.changed_bytes },
                run.unchanged,
                run.failed,
            },
        );
        return if (run.failed > 0) Call.exit_failed else 0;
    }

    /// A device whose writes another edge keeps may have former ones here: nobody is to continue
    /// from them.
    fn isCopied(run: *const Run, binding: *const store_module.WriteLayer.Binding) bool {
        if (binding.class != .edge_persistent and binding.class != .private) return false;
        const owner = run.owner orelse return true;
        return owner.of(binding.device_id) != .other;
    }

    fn say(run: *const Run, layer: Uuid, why: []const u8) void {
        run.call.print(
            .{ .layer = layer, .problem = why },
            "write cache {f} is not copied: {s}",
            .{ layer, why },
        );
    }

    fn skip(run: *const Run, layer: Uuid, why: []const u8) error{Skipped} {
        run.say(layer, why);
        return error.Skipped;
    }

    fn one(run: *Run, layer: Uuid, head: *const store_module.layer_head.Head) Error!void {
        const call, const files = .{ run.call, run.on.files() };
        const moment = host.sys.unixMs();
        const change_ns = run.changeOf(layer, moment);
        var dir_name: store_module.files.Name = undefined;
        const dir = names.ownDir(layer, &dir_name);
        if (run.isUnchanged(dir, head, change_ns)) {
            OwnCopy.renew(call.gpa, files, dir, moment) catch |err|
                return run.explain(layer, err);
            run.unchanged += 1;
            return;
        }
        run.copy(layer, dir, head, moment, change_ns) catch |err| return switch (err) {
            error.Canceled, error.Skipped, error.Wrong, error.Busy => |other| other,
            else => |other| run.explain(layer, other),
        };
        run.copied += 1;
    }

    const CopyError = Error || OwnCopy.Error || layer_file.ImportError ||
        store_module.LayerSnapshot.OpenError || store_module.LayerSnapshot.Error;

    fn copy(
        run: *Run,
        layer: Uuid,
        dir: []const u8,
        head: *const store_module.layer_head.Head,
        moment: u64,
        change_ns: u64,
    ) CopyError!void {
        const gpa, const files = .{ run.call.gpa, run.on.files() };
        var layer_name: store_module.files.Name = undefined;
        const layer_dir = device_layers.dirOf(layer, &layer_name);
        var whole = store_module.LayerSnapshot.openWhole(gpa, files, layer_dir) catch |err| {
            if (err != error.InUse) return err;
            return run.copyFromEdge(layer, dir, moment, change_ns);
        };
        defer whole.close();
        var made: OwnCopy = try .begin(gpa, files, dir, head);
        defer made.deinit();
        while (try whole.read()) try run.add(&made, layer, (try whole.take()).?);
        try run.finish(&made, moment, change_ns);
    }

    /// The device runs: its edge sends a snapshot.
    fn copyFromEdge(
        run: *Run,
        layer: Uuid,
        dir: []const u8,
        moment: u64,
        change_ns: u64,
    ) CopyError!void {
        const gpa, const files = .{ run.call.gpa, run.on.files() };
        const packet = try gpa.create(host.snapshot_socket.Buffer);
        defer gpa.destroy(packet);
        var buffer: [64 << 10]u8 = undefined;
        var sent = EdgeSnapshot.open(run.on.dir_fd, layer, packet, &buffer) catch
            return run.skip(layer, "its device runs, and no edge of this release takes snapshots");
        defer sent.close();
        const found = layer_file.FileHead.take(&sent.reader) catch
            return run.failedSnapshot(layer, &sent);
        var pieces: layer_file.PieceReader = try .init(gpa, &sent.reader, &found);
        defer pieces.deinit(gpa);
        var made: OwnCopy = try .begin(gpa, files, dir, &found.head);
        defer made.deinit();
        while (pieces.next() catch return run.failedSnapshot(layer, &sent)) |piece|
            try run.add(&made, layer, piece);
        try run.finish(&made, moment, change_ns);
    }

    fn failedSnapshot(run: *const Run, layer: Uuid, sent: *const EdgeSnapshot) Error {
        if (cancel.is_asked.load(.monotonic)) return error.Canceled;
        const failure = sent.failure orelse
            return run.skip(layer, "the edge ended in the middle of the snapshot");
        var buffer: [128]u8 = undefined;
        const name = std.enums.tagName(host.snapshot_socket.Failure, failure) orelse "unknown";
        const why = std.mem.print(&buffer, "the edge's snapshot failed ({s})", .{name}) catch
            unreachable;
        return run.skip(layer, why);
    }

    fn add(
        run: *const Run,
        made: *OwnCopy,
        layer: Uuid,
        piece: store_module.LayerSnapshot.Piece,
    ) CopyError!void {
        if (cancel.is_asked.load(.monotonic)) return error.Canceled;
        const size = piece.bytes.len;
        if (!host.copy_space.has(run.on.dir_fd, run.reserve_bytes, size)) return run.skip(
            layer,
            "the store's disk keeps its last space for devices' writes; free some",
        );
        try made.add(piece);
    }

    fn finish(run: *Run, made: *OwnCopy, moment: u64, change_ns: u64) CopyError!void {
        var list = try made.finish(moment, change_ns);
        list.deinit(run.call.gpa);
        run.changed_bytes += made.changed_bytes;
    }

    fn isUnchanged(
        run: *const Run,
        dir: []const u8,
        head: *const store_module.layer_head.Head,
        change_ns: u64,
    ) bool {
        if (change_ns == 0) return false;
        var name: store_module.files.Name = undefined;
        const path = names.join(&name, dir, OwnCopy.list_name);
        var list = AreaList.read(run.call.gpa, run.on.files(), path) catch return false;
        defer list.deinit(run.call.gpa);
        return list.header.source_change_ns == change_ns and
            list.head.layer_id.eql(head.layer_id);
    }

    /// When the layer's bytes have changed last; 0: unknown, or just now.
    fn changeOf(run: *const Run, layer: Uuid, unix_ms: u64) u64 {
        var dir: store_module.files.Name = undefined;
        var buffer: [store_module.files.name_size_max + 1]u8 = undefined;
        const path = std.mem.printSentinel(
            &buffer,
            "{s}/data",
            .{device_layers.dirOf(layer, &dir)},
            0,
        ) catch return 0;
        var stat: linux.Statx = undefined;
        const rc = linux.statx(run.on.dir_fd, path, 0, .{ .MTIME = true }, &stat);
        _ = host.sys.check(rc) catch return 0;
        const seconds: u64 = @intCast(@max(stat.mtime.sec, 0));
        const change_ns = seconds * std.time.ns_per_s + stat.mtime.nsec;
        const now_ns = unix_ms * std.time.ns_per_ms;
        return if (change_ns +| settled_ns < now_ns) change_ns else 0;
    }

    fn explain(run: *const Run, layer: Uuid, problem: anytype) Error {
        return switch (@as(anyerror, problem)) {
            error.OutOfMemory => error.OutOfMemory,
            error.NoSpace => run.skip(layer, "the store's disk is full"),
            error.TooLarge => run.skip(
                layer,
                "it has writes in more than 262144 areas of 1 MiB; back it up with caches snapshot",
            ),
            error.Rotten, error.Damaged => run.skip(layer, "it is damaged on this edge's disk"),
            error.Lost => run.skip(layer, "a part of it is missing or truncated"),
            error.NewerFormat => run.skip(layer, "a later release has made it"),
            else => run.skip(layer, "the store's disk reports an error, or refuses this user"),
        };
    }

    /// Removes the copies of layers that are gone, or that another edge keeps now.
    fn sweep(run: *const Run) store_module.files.Error!void {
        const files = run.on.files();
        var walk: names.Iterator = .{ .files = files, .dir = names.own_parent };
        while (try walk.next()) |layer| {
            var layer_name: store_module.files.Name = undefined;
            const path = device_layers.dirOf(layer, &layer_name);
            if (store_module.WriteLayer.readHead(files, path)) |head| {
                if (run.isCopied(&head.binding)) continue;
            } else |err| if (err != error.NotFound) continue;
            var name: store_module.files.Name = undefined;
            try OwnCopy.remove(files, names.ownDir(layer, &name));
        }
    }
};
