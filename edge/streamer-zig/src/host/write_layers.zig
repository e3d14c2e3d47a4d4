//! The write layers of the boots that this edge serves (docs/write-caches.md): one for each boot whose write cache is at the edge. The
//! packet loop writes them; threads of their own wait for the disk, so that one device's syncs keep no other waiting.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const wire = @import("wire").stream;
const sys = @import("sys.zig");
const speak = @import("speak.zig");
const assert = std.debug.assert;
const linux = std.os.linux;

const WriteLayer = store.WriteLayer;
const WriteRef = core.StreamServer.WriteRef;
const Uuid = base.Uuid;

/// Threads that wait for the disk.
const workers_count = 4;
const parent = "layers";

/// What boots get whose vDisk says nothing else.
pub const Wanted = struct {
    class: wire.WriteCacheClass = .device_ram,
    /// Bytes; null: as many as the disk has.
    limit_bytes: ?u64 = null,
    /// What becomes of a persistent layer of another version.
    of_another_version: enum { refuse, discard } = .refuse,
};

pub const Layer = struct {
    boot_id: Uuid,
    device_id: Uuid,
    version_id: Uuid,
    class: wire.WriteCacheClass,
    inner: WriteLayer,
    batch: WriteLayer.Batch = .{},
    /// What waits for a sync, oldest first; the first `syncing_count` for the one that runs.
    waiting: [wire.writes.window]WriteRef = undefined,
    waiting_count: u8 = 0,
    syncing_count: u8 = 0,
    is_syncing: bool = false,
    /// Of what `runSync` found; written by a worker, read when it has said so.
    result: store.files.Error!void = {},
    /// Its boot is over: closed when no sync runs.
    is_over: bool = false,
    fill: store.LayerFill = .{},

    pub fn cache(layer: *const Layer) core.StreamServer.WriteCache {
        const id = std.mem.readInt(u64, layer.inner.head.layer_id.bytes[8..16], .big);
        return .{ .class = layer.class, .size = layer.inner.head.limit_bytes, .id = id | 1 };
    }
};

pub const WriteLayers = struct {
    gpa: std.mem.Allocator,
    files: store.LinuxFiles,
    layers: []?*Layer,
    /// Behind the last that is open.
    top: usize = 0,
    wanted: Wanted,
    /// Pointers of layers to the workers, and back.
    jobs: [2]i32,
    ended: [2]i32,

    pub const InitError = error{ OutOfMemory, SystemCallFailed, NotWritable };
    pub const Granted = union(enum) { none, cache: core.StreamServer.WriteCache, refused: wire.RefuseCode };

    /// `dir_fd` is of the store's directory, in which `layers` is made where it is missing.
    pub fn init(gpa: std.mem.Allocator, dir_fd: i32, capacity: u32, wanted: Wanted) InitError!WriteLayers {
        var files: store.LinuxFiles = .fromFd(dir_fd);
        files.files().makeDir(parent) catch |err| if (err != error.Exists and wanted.class != .device_ram) return error.NotWritable;
        const layers = try gpa.alloc(?*Layer, capacity);
        @memset(layers, null);
        return .{
            .gpa = gpa,
            .files = files,
            .layers = layers,
            .wanted = wanted,
            .jobs = try pipe(false),
            .ended = try pipe(true),
        };
    }

    /// The threads run until the process ends.
    pub fn start(layers: *WriteLayers) std.Thread.SpawnError!void {
        for (0..workers_count) |_| {
            const thread = try std.Thread.spawn(.{ .stack_size = 256 << 10 }, work, .{ layers.jobs[0], layers.ended[1] });
            thread.detach();
        }
    }

    /// Something to wait for: a sync has ended.
    pub fn endedFd(layers: *const WriteLayers) i32 {
        return layers.ended[0];
    }

    pub fn find(layers: *const WriteLayers, boot_id: Uuid) ?*Layer {
        for (layers.layers[0..layers.top]) |place| {
            const layer = place orelse continue;
            if (!layer.is_over and layer.boot_id.eql(boot_id)) return layer;
        }
        return null;
    }

    /// The write cache of a boot that opens or resumes its session; `disk` is good for as long as the boot is known.
    pub fn grant(
        layers: *WriteLayers,
        boot: *const core.boot.Boot,
        disk: store.BlockSource,
        wanted: Wanted,
        kind: wire.HelloKind,
    ) Granted {
        if (layers.find(boot.identity.id)) |layer| {
            layer.inner.below = disk;
            return .{ .cache = layer.cache() };
        }
        if (wanted.class == .device_ram) return .none;
        const binding: WriteLayer.Binding = .{
            .class = if (wanted.class == .edge) .edge else .edge_persistent,
            .device_id = deviceIdOf(boot),
            .version_id = boot.assignment.version_id,
            .disk_size = disk.size,
        };
        // The session was opened with a layer, and that ended with its process.
        if (wanted.class == .edge and boot.token_nonce != null and kind == .resumption) return .{ .refused = .cache_lost };
        const open_still = layers.takeOver(&binding, boot.identity.id) catch return .{ .refused = .busy };
        if (open_still) |layer| {
            // The version may have been closed and opened again since.
            layer.inner.below = disk;
            return .{ .cache = layer.cache() };
        }
        const layer = layers.open(boot, disk, &binding, wanted, kind) catch |err|
            return .{ .refused = refusalOf(boot, err, kind) };
        return .{ .cache = layer.cache() };
    }

    /// Carries out what a device asked for; null: it is answered later, by `takeEnded`.
    pub fn carryOut(layers: *WriteLayers, layer: *Layer, ref: WriteRef, order: Order) Carried {
        _ = layers;
        const result = switch (order) {
            .write => |write| layer.inner.write(write.bytes, write.offset),
            .discard => |range| layer.inner.discard(range.offset, range.length),
            .flush => if (layer.inner.is_lost) error.Lost else {},
        };
        result catch |err| return switch (err) {
            error.Full => .{ .ended = .cache_full },
            error.BeyondTheEnd => .{ .ended = .beyond_the_end },
            error.Lost => blk: {
                tellLost(layer);
                break :blk .{ .ended = .cache_lost };
            },
            // A sync comes first, or the disk below may be read again.
            error.Busy, error.ReadFailed, error.Damaged => .later,
        };
        if (layer.class == .edge) return .{ .ended = .done };
        if (layer.waiting_count == layer.waiting.len) return .later;
        layer.waiting[layer.waiting_count] = ref;
        layer.waiting_count += 1;
        return .waits;
    }

    pub const Order = union(enum) {
        write: struct { offset: u64, bytes: []const u8 },
        discard: struct { offset: u64, length: u32 },
        flush,
    };

    pub const Carried = union(enum) {
        ended: wire.WriteCode,
        /// Until a sync has ended.
        waits,
        /// It was not carried out; the device asks again.
        later,
    };

    /// Begins the syncs that somebody waits for: one for all that has come to a layer since its last one.
    pub fn beginSyncs(layers: *WriteLayers) void {
        for (layers.layers[0..layers.top]) |place| {
            const layer = place orelse continue;
            if (layer.is_syncing or layer.waiting_count == 0) continue;
            layer.is_syncing = true;
            layer.syncing_count = layer.waiting_count;
            layer.result = {};
            const fd = if (layer.inner.beginSync(&layer.batch)) layers.jobs[1] else layers.ended[1];
            sendPointer(fd, layer);
        }
    }

    pub const Ended = struct { layer: *Layer, code: wire.WriteCode };

    /// A layer whose sync has ended; its `waiting[0..syncing_count]` have ended so. `release` follows.
    pub fn takeEnded(layers: *WriteLayers) ?Ended {
        const layer = receivePointer(layers.ended[0]) orelse return null;
        assert(layer.is_syncing);
        layer.inner.endSync(layer.result) catch {
            tellLost(layer);
            return .{ .layer = layer, .code = .cache_lost };
        };
        return .{ .layer = layer, .code = .done };
    }

    pub fn release(layers: *WriteLayers, layer: *Layer) void {
        const left = layer.waiting_count - layer.syncing_count;
        std.mem.copyForwards(WriteRef, layer.waiting[0..left], layer.waiting[layer.syncing_count..layer.waiting_count]);
        layer.waiting_count = left;
        layer.syncing_count = 0;
        layer.is_syncing = false;
        if (layer.is_over) layers.closeOf(layer);
    }

    /// Once a second: layers of boots that are no more are closed, and alarms given.
    pub fn tick(layers: *WriteLayers, now_us: u64, table: *core.BootTable) void {
        for (layers.layers[0..layers.top]) |place| {
            const layer = place orelse continue;
            const used, const limit = .{ layer.inner.usedBytes(), layer.inner.head.limit_bytes };
            if (layer.fill.note(now_us, used, limit)) |mark| tellFill(layer, now_us, mark);
            const boot = if (table.findById(layer.boot_id)) |ref| table.get(ref) else null;
            const is_over = boot == null or (boot.?.outcome != null and boot.?.outcome.? == .superseded);
            // A persistent one waits for the device's next boot, which takes it over.
            if (!is_over or (boot != null and layer.class == .edge_persistent)) continue;
            layer.is_over = true;
            if (!layer.is_syncing) layers.closeOf(layer);
        }
    }

    /// The layer of an earlier boot of the same device, where it is still open. Throws where it is being synced.
    fn takeOver(layers: *WriteLayers, binding: *const WriteLayer.Binding, boot_id: Uuid) error{Busy}!?*Layer {
        for (layers.layers[0..layers.top]) |place| {
            const layer = place orelse continue;
            if (!layer.device_id.eql(binding.device_id)) continue;
            if (layer.is_syncing) return error.Busy;
            const goes_on = layer.class == .edge_persistent and binding.class == .edge_persistent and
                layer.version_id.eql(binding.version_id) and !layer.inner.is_lost;
            if (!goes_on) {
                layers.closeOf(layer);
                continue;
            }
            layer.boot_id = boot_id;
            layer.is_over = false;
            layer.waiting_count = 0;
            return layer;
        }
        return null;
    }

    pub const OpenError = WriteLayer.OpenError || error{ Refused, TooMany };

    fn open(
        layers: *WriteLayers,
        boot: *const core.boot.Boot,
        disk: store.BlockSource,
        binding: *const WriteLayer.Binding,
        wanted: Wanted,
        kind: wire.HelloKind,
    ) OpenError!*Layer {
        const place: *?*Layer = for (layers.layers) |*place| {
            if (place.* == null) break place;
        } else return error.TooMany;
        const layer = try layers.gpa.create(Layer);
        errdefer layers.gpa.destroy(layer);
        layer.* = .{
            .boot_id = boot.identity.id,
            .device_id = binding.device_id,
            .version_id = binding.version_id,
            .class = wanted.class,
            .inner = undefined,
        };
        layer.inner = try layers.openInner(layer.boot_id, disk, binding, wanted, kind);
        place.* = layer;
        layers.top = @max(layers.top, place - layers.layers.ptr + 1);
        return layer;
    }

    fn openInner(
        layers: *WriteLayers,
        boot_id: Uuid,
        below: store.BlockSource,
        binding: *const WriteLayer.Binding,
        wanted: Wanted,
        kind: wire.HelloKind,
    ) OpenError!WriteLayer {
        const files = layers.files.files();
        var buffer: [parent.len + 1 + Uuid.text_size]u8 = undefined;
        const name_id = if (binding.class == .edge) boot_id else binding.device_id;
        const dir = std.mem.print(&buffer, parent ++ "/{f}", .{name_id}) catch unreachable; // It is as long as that.
        if (binding.class == .edge_persistent) {
            if (WriteLayer.open(layers.gpa, files, dir, binding, below)) |inner| return inner else |err| switch (err) {
                // A device that was served with a layer must not go on without it.
                error.NotFound => if (kind == .resumption) return error.Lost,
                error.AnotherVersion, error.AnotherSize => {
                    if (kind == .resumption or wanted.of_another_version == .refuse) return error.AnotherVersion;
                    try WriteLayer.remove(files, dir);
                    speak.line("write cache of device {f}: what it had written above another version is removed", .{binding.device_id});
                },
                else => return err,
            }
        }
        var random: [16]u8 = undefined;
        sys.random(&random);
        return WriteLayer.create(layers.gpa, files, dir, .{
            .layer_id = .fromRandom(random),
            .binding = binding.*,
            .limit_bytes = wanted.limit_bytes orelse std.mem.alignForward(u64, binding.disk_size, WriteLayer.block_size),
            .sequence = 0,
        }, below);
    }

    fn closeOf(layers: *WriteLayers, layer: *Layer) void {
        assert(!layer.is_syncing);
        for (layers.layers) |*place| if (place.* == layer) {
            place.* = null;
        };
        while (layers.top > 0 and layers.layers[layers.top - 1] == null) layers.top -= 1;
        layer.inner.close(layers.gpa);
        layers.gpa.destroy(layer);
    }
};

/// Of a device that is in no desired state: made of its address.
fn deviceIdOf(boot: *const core.boot.Boot) Uuid {
    if (boot.assignment.device_id) |id| return id;
    var digest: [32]u8 = undefined;
    std.crypto.hash.sha2.Sha256.hash(&boot.identity.mac.bytes, &digest, .{});
    return .fromRandom(digest[0..16].*);
}

fn refusalOf(boot: *const core.boot.Boot, err: WriteLayers.OpenError, kind: wire.HelloKind) wire.RefuseCode {
    const mac = boot.identity.mac;
    switch (err) {
        error.AnotherVersion, error.AnotherSize => {
            speak.line("{f}: its write cache belongs to another version of its disk; remove it, or give the device that version", .{mac});
            return .cache_version;
        },
        error.Lost, error.Damaged => {
            speak.line("{f}: its write cache is {s}; nothing of it is served", .{
                mac,
                if (err == error.Lost) "missing or cut short" else "damaged",
            });
            return .cache_lost;
        },
        else => {
            speak.line("{f}: its write cache cannot be {s} ({t})", .{ mac, if (kind == .token) "made" else "opened", err });
            return .cache_failed;
        },
    }
}

fn tellLost(layer: *const Layer) void {
    speak.line("write cache of device {f}: the disk failed; nothing of it is served any more", .{layer.device_id});
}

fn tellFill(layer: *const Layer, now_us: u64, mark: u8) void {
    const used, const limit = .{ layer.inner.usedBytes(), layer.inner.head.limit_bytes };
    if (mark == 100) return speak.line(
        "write cache of device {f} is full ({d} MiB): its writes fail",
        .{ layer.device_id, limit >> 20 },
    );
    const seconds = layer.fill.secondsUntilFull(now_us, used, limit) orelse return speak.line(
        "write cache of device {f} is {d} % full ({d} of {d} MiB)",
        .{ layer.device_id, mark, used >> 20, limit >> 20 },
    );
    speak.line("write cache of device {f} is {d} % full ({d} of {d} MiB); as it goes, it is full in {d} min", .{
        layer.device_id, mark, used >> 20, limit >> 20, seconds / 60,
    });
}

fn work(jobs_fd: i32, ended_fd: i32) void {
    while (true) {
        const layer = receivePointer(jobs_fd) orelse continue;
        layer.result = layer.inner.runSync(&layer.batch);
        sendPointer(ended_fd, layer);
    }
}

/// Pointers go through pipes whole: they are shorter than what a pipe takes at once.
fn pipe(is_read_by_the_loop: bool) error{SystemCallFailed}![2]i32 {
    var fds: [2]i32 = undefined;
    _ = sys.check(linux.pipe2(&fds, .{ .CLOEXEC = true })) catch return error.SystemCallFailed;
    if (is_read_by_the_loop) {
        const flags: linux.O = .{ .NONBLOCK = true };
        const number: u32 = @bitCast(flags);
        _ = sys.check(linux.fcntl(fds[0], linux.F.SETFL, number)) catch return error.SystemCallFailed;
    }
    return fds;
}

fn sendPointer(fd: i32, layer: *Layer) void {
    const bytes = std.mem.toBytes(@intFromPtr(layer));
    while (linux.errno(linux.write(fd, &bytes, bytes.len)) == .INTR) {}
}

fn receivePointer(fd: i32) ?*Layer {
    var bytes: [@sizeOf(usize)]u8 = undefined;
    const rc = linux.read(fd, &bytes, bytes.len);
    if (linux.errno(rc) != .SUCCESS or rc != bytes.len) return null;
    return @ptrFromInt(std.mem.bytesToValue(usize, &bytes));
}

test {
    _ = @import("write_layers_test.zig");
}
