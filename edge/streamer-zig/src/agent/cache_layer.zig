//! One write cache that this edge keeps: its state for the agent, and the work on its files, which
//! threads do while the agent serves other devices. `Io` runs a work, and `Stream.endWork` follows;
//! until then the work has the layer's files to itself, except for a sync, beside which everything
//! else may go on.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const wire = @import("wire").stream;
const OrderPool = @import("order_pool.zig");
const mutants = @import("mutants.zig");
const assert = std.debug.assert;

const CacheClass = core.boot.Guest.CacheClass;
const CacheState = core.boot.Guest.CacheState;
const StreamServer = core.stream.Server;
const Uuid = base.Uuid;
const WriteLayer = store.WriteLayer;
const WriteRef = StreamServer.WriteRef;
const device_layers = store.device_layers;

/// A running device sends a REPORT every 5 s (STREAM.md).
pub const heard_us = 12 * std.time.us_per_s;

pub const Order = OrderPool.Order;

/// What a thread does for a layer.
pub const LayerWork = struct {
    layer: *Layer,
    kind: Kind,
    /// Set by the thread.
    is_run: bool = false,

    pub const Kind = enum {
        /// Opens or creates the layer.
        open,
        close,
        /// Carries out the first `writing_count` orders.
        write,
        sync,
    };

    /// Called once for each start of a work, on any thread.
    pub fn run(work: *LayerWork) void {
        assert(!work.is_run);
        const layer = work.layer;
        switch (work.kind) {
            .open => layer.opening.run(&layer.inner),
            .close => {
                layer.inner.settle(&layer.batch);
                layer.inner.close(layer.opening.gpa);
            },
            .write => layer.runOrders(),
            .sync => layer.result = layer.inner.runSync(&layer.batch),
        }
        work.is_run = true;
    }
};

/// A HELLO that is answered when its layer is open.
pub const WaitingHello = struct { claim: StreamServer.Claim, size: usize };

pub const Layer = struct {
    /// In the table of layers.
    slot: u32,
    boot_id: Uuid,
    device_id: Uuid,
    binding: WriteLayer.Binding,
    class: CacheClass,
    full: core.uplink.desired_state.WriteCacheFull,
    phase: Phase = .opening,
    opening: Opening,
    /// The latest HELLO that waits for the end of `work`.
    hello: ?WaitingHello = null,
    /// Opens or closes it, or carries out orders.
    work: LayerWork = undefined,
    sync: LayerWork = undefined,
    /// Set when it was full, until the device starts again.
    is_closed: bool = false,
    /// Valid while `isOpen`; a thread's while `isWriting`, except for `files`, `data`,
    /// `head` and the handle of `sums`.
    inner: WriteLayer = undefined,
    /// The version below, for this thread.
    below: store.BlockSource,
    /// What was found out beside a thread that carries out orders.
    is_lost: bool = false,
    pool: *OrderPool,
    /// Not carried out yet; a thread has the first `writing_count`.
    orders: OrderPool.Queue = .{},
    writing_count: u16 = 0,
    /// Those of them that the thread leaves for the next turn: the first is a discard that it has
    /// begun. Written by the thread.
    left_count: u16 = 0,
    batch: WriteLayer.Batch = .{},
    /// Writes that wait for a sync, oldest first; the first `syncing_count` wait for the running
    /// one.
    waiting: [wire.writes.window]WriteRef = undefined,
    waiting_count: u8 = 0,
    syncing_count: u8 = 0,
    is_syncing: bool = false,
    /// Reads in progress on threads.
    reads: u16 = 0,
    /// The result of `runSync`; written by a worker, read after the sync ended.
    result: store.files.Error!void = {},
    /// Its boot is over: close it when no thread uses it.
    is_over: bool = false,
    /// The next program in this process has it.
    is_handed_over: bool = false,
    /// In progress.
    snapshot: ?*store.LayerSnapshot = null,
    fill: store.LayerFill = .{},
    level: FillLevel = .ok,

    pub const Phase = enum { opening, open, closing };

    pub fn cache(layer: *const Layer) StreamServer.WriteCache {
        assert(layer.isOpen());
        const id = std.mem.readInt(u64, layer.inner.head.layer_id.bytes[8..16], .big);
        return .{
            .class = layer.class.onWire(),
            .size = layer.inner.head.limit_bytes,
            .id = id | 1,
        };
    }

    pub fn isOpen(layer: *const Layer) bool {
        return layer.phase == .open;
    }

    pub fn isInUse(layer: *const Layer) bool {
        return layer.phase != .open or layer.isWriting() or layer.is_syncing or layer.reads > 0;
    }

    /// A thread carries out orders: nobody else reads the layer now.
    pub fn isWriting(layer: *const Layer) bool {
        return layer.writing_count > 0;
    }

    pub fn isLost(layer: *const Layer) bool {
        return layer.is_lost or (!layer.isWriting() and layer.inner.is_lost);
    }

    /// Nothing of the layer is served any more.
    pub fn lose(layer: *Layer) void {
        assert(layer.isOpen());
        layer.is_lost = true;
        if (!layer.isWriting()) layer.inner.is_lost = true;
    }

    /// Returns whether this is the version that the layer was begun above.
    pub fn isAbove(layer: *const Layer, below: anytype) bool {
        return below.source.size == layer.binding.disk_size and
            std.mem.eql(u8, &below.root, &layer.binding.version_root);
    }

    /// The version below may have been closed and opened again.
    pub fn setBelow(layer: *Layer, below: store.BlockSource) void {
        assert(layer.isOpen());
        assert(below.size == layer.binding.disk_size);
        layer.below = below;
        if (!layer.isWriting()) layer.inner.below = below;
    }

    /// Carries out orders on a thread. One that does not fit ends what the device may write, so
    /// later ones do not fit either.
    fn runOrders(layer: *Layer) void {
        assert(layer.isWriting());
        assert(layer.writing_count <= layer.orders.count);
        assert(layer.left_count == 0);
        var orders = layer.pool.iterate(&layer.orders, layer.writing_count);
        var refusal_of_all: WriteLayer.WriteError!void = if (layer.is_closed) error.Full;
        while (orders.next()) |pending| {
            pending.result = refusal_of_all;
            if (std.meta.isError(refusal_of_all) and pending.order != .flush) continue;
            const is_whole = layer.runOrder(pending) catch |err| {
                pending.result = err;
                if (err == error.Full or err == error.NoSpace) refusal_of_all = err;
                continue;
            };
            pending.result = {};
            if (is_whole) continue;
            // Nothing overtakes its rest, and reads come first.
            layer.left_count = orders.left + 1;
            return;
        }
    }

    /// Returns whether the order is carried out to its end.
    fn runOrder(layer: *Layer, pending: *OrderPool.Pending) WriteLayer.WriteError!bool {
        switch (pending.order) {
            .write => |write| try layer.inner.write(
                if (mutants.has(.write_kept_in_part)) write.bytes[0..512] else write.bytes,
                write.offset,
            ),
            .discard => |range| if (!mutants.has(.discard_does_nothing)) {
                const done = pending.done_size;
                assert(done == 0 or done < range.length);
                const part = try layer.inner.discardPart(range.offset + done, range.length - done);
                pending.done_size += @intCast(part);
                if (mutants.has(.discard_ends_early)) return true;
                return pending.done_size == range.length;
            },
            .flush => if (layer.inner.is_lost) return error.Lost,
        }
        return true;
    }

    /// Returns whether a snapshot may begin: no thread writes, and no order is carried out in part.
    pub fn isBetweenOrders(layer: *const Layer) bool {
        return !layer.isWriting() and !layer.pool.isFirstBegun(&layer.orders);
    }

    pub fn held(layer: *const Layer) core.boot.Guest.CacheStatus {
        return .{ .class = layer.class, .state = layer.state() };
    }

    /// Its blocks may change from now on, and are not kept.
    pub fn endSnapshot(layer: *Layer) void {
        assert(!layer.isWriting());
        const snapshot = layer.snapshot orelse return;
        snapshot.end(&layer.inner);
        layer.snapshot = null;
    }

    /// Returns whether this is the write cache or private image in that directory.
    pub fn isIn(layer: *const Layer, dir: []const u8) bool {
        const class = layer.binding.class;
        if (class != .edge_persistent and class != .private) return false;
        return std.mem.eql(u8, layer.opening.dir_buffer[0..layer.opening.dir_size], dir);
    }

    fn state(layer: *const Layer) CacheState {
        assert(layer.isOpen());
        if (layer.isLost()) return .lost;
        if (!layer.is_closed) return .ok;
        return if (layer.full == .stop) .stopped else .read_only;
    }

    /// Returns the answer to every order in this state; null: carry it out.
    pub fn refusal(layer: *const Layer, order: std.meta.Tag(Order)) ?wire.WriteCode {
        return switch (layer.state()) {
            .ok, .lost => null,
            .stopped => .stopped,
            .read_only => if (order == .flush) null else .cache_full,
        };
    }

    pub fn isHeard(layer: *const Layer, server: *const StreamServer, now_us: u64) bool {
        if (!layer.isOpen() or layer.is_over) return false;
        const session = server.sessionOf(layer.boot_id) orelse return false;
        return now_us -| session.last_packet_at_us < heard_us;
    }

    pub fn isOf(layer: *const Layer, version_id: Uuid) bool {
        return layer.binding.class == .maintenance and layer.binding.version_id.eql(version_id);
    }
};

/// How full a layer is; the marks are those of its alarms.
pub const FillLevel = enum {
    ok,
    warning,
    critical,
    full,

    pub fn of(percent: u8) FillLevel {
        const marks = store.layer_fill.marks;
        if (percent < marks[0]) return .ok;
        if (percent < marks[1]) return .warning;
        return if (percent < marks[2]) .critical else .full;
    }
};

pub const OpenError = WriteLayer.OpenError || error{ Refused, TooMany };

/// A layer is only as durable as the name of the directory above it.
pub fn makeParent(files: store.Files) store.files.Error!void {
    files.makeDir(device_layers.parent) catch |err| if (err != error.Exists) return err;
    try files.syncDir("");
}

/// Opens or creates the files of a layer.
pub const Opening = struct {
    gpa: std.mem.Allocator,
    files: store.Files,
    dir_buffer: store.files.Name = undefined,
    dir_size: usize = 0,
    /// Unguessable; of a layer that does not exist yet.
    layer_id: Uuid,
    binding: WriteLayer.Binding,
    below: store.BlockSource,
    limit_bytes: u64,
    kind: wire.HelloKind,
    /// Removes a persistent layer of another version.
    discards_another: bool,
    /// The directory of layers is to be made first.
    needs_parent: bool,
    /// The disk is almost full: a new layer would take no block.
    is_short: bool,
    /// Written by the thread, read when it has ended.
    result: OpenError!void = {},
    has_removed: bool = false,

    /// Names the directory of the layer; the id is that of the boot.
    pub fn setDir(opening: *Opening, boot_id: Uuid, vdisk_id: ?Uuid) void {
        const binding = &opening.binding;
        opening.dir_size = device_layers.dirOf(switch (binding.class) {
            .edge => boot_id,
            .edge_persistent, .private => device_layers.nameOf(.{
                .class = binding.class,
                .device_id = binding.device_id,
                .vdisk_id = vdisk_id orelse .zero,
            }),
            // Where store/seal.zig finds it.
            .maintenance => binding.version_id,
        }, &opening.dir_buffer).len;
        assert(opening.dir_size > 0);
    }

    fn run(opening: *Opening, inner: *WriteLayer) void {
        opening.result = if (opening.open()) |layer| blk: {
            inner.* = layer;
            break :blk {};
        } else |err| err;
    }

    fn open(opening: *Opening) OpenError!WriteLayer {
        const gpa, const files = .{ opening.gpa, opening.files };
        const binding = &opening.binding;
        const dir = opening.dir_buffer[0..opening.dir_size];
        if (binding.class.isDurable()) {
            if (WriteLayer.open(gpa, files, dir, binding, opening.below)) |inner| {
                var opened = inner;
                // The current limit counts, not the one from its creation.
                opened.head.limit_bytes = opening.limit_bytes;
                return opened;
            } else |err| switch (err) {
                // A device that was served with a layer must not go on without it.
                error.NotFound => if (opening.kind == .resumption and
                    !mutants.has(.lost_cache_replaced)) return error.Lost,
                error.AnotherVersion, error.AnotherSize => {
                    const is_kept = binding.class != .edge_persistent or !opening.discards_another;
                    if (opening.kind == .resumption or is_kept) return error.AnotherVersion;
                    try WriteLayer.remove(files, dir);
                    opening.has_removed = true;
                },
                else => return err,
            }
        }
        if (opening.is_short) return error.NoSpace;
        if (opening.needs_parent) try makeParent(files);
        return WriteLayer.create(gpa, files, dir, .{
            .layer_id = opening.layer_id,
            .binding = binding.*,
            .limit_bytes = opening.limit_bytes,
            .sequence = 0,
        }, opening.below);
    }
};
