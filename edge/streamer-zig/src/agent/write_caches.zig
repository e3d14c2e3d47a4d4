//! The write caches that this edge keeps for devices (docs/guides/write-caches.md): one layer for
//! each boot whose writes stay at the edge. Decides who gets a layer, who owns it, when it is
//! closed, and what a write is answered. Threads open, sync and close layers (`cache_layer.zig`),
//! and `Io` says when that has ended. Invariant: what was acknowledged is never answered from the
//! version below; a layer that is lost answers nothing.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const wire = @import("wire").stream;
const cache_handover = @import("cache_handover.zig");
const cache_layer = @import("cache_layer.zig");
const cache_snapshot = @import("cache_snapshot.zig");
const OrderPool = @import("order_pool.zig");
const mutants = @import("mutants.zig");
const assert = std.debug.assert;

const WriteLayer = store.WriteLayer;
const CacheClass = core.boot.Guest.CacheClass;
const OpenError = cache_layer.OpenError;
const device_layers = store.device_layers;
const WriteRef = core.stream.Server.WriteRef;
const Uuid = base.Uuid;

pub const heard_us = cache_layer.heard_us;
/// The layer of a device that is silent for so long is closed, so that others may work on it.
const silent_us = 30 * std.time.us_per_s;

/// The write cache that a boot gets.
pub const CacheSettings = struct {
    class: CacheClass = .device_ram,
    /// Bytes; null: the size of the disk.
    limit_bytes: ?u64 = null,
    /// What happens to a device whose write cache is full.
    full: core.uplink.desired_state.WriteCacheFull = .stop,
    /// What happens to a persistent layer of another version.
    of_another_version: enum { refuse, discard } = .refuse,
    /// The device writes its version, which is in maintenance: the layer belongs to the version,
    /// not to the device.
    writes_version: bool = false,
};

/// The disk below a layer.
pub const Below = struct {
    source: store.BlockSource,
    /// Root hash of the version; zeros where it has none (a plain file).
    root: [32]u8 = @splat(0),
};

pub const FillLevel = cache_layer.FillLevel;
pub const FillCounts = [std.enums.values(FillLevel).len]u64;

/// The answer to a store job that needs a layer which the agent may have open.
pub const HoldAnswer = enum {
    waiting,
    /// Nobody writes the layer, and nobody opens it.
    held,
    /// Its device is heard.
    written,
};

pub const HoldSubject = union(enum) {
    /// A version in maintenance.
    version: Uuid,
    device: Uuid,
};

pub const SnapshotOrder = cache_snapshot.Order;
pub const SnapshotAnswer = cache_snapshot.Answer;

pub const Order = cache_layer.Order;

pub const WriteOutcome = union(enum) {
    ended: wire.WriteCode,
    /// Until a thread has carried it out, and until a sync has ended.
    waits,
    /// Not carried out; the device retransmits it.
    later,
};

pub const CacheGrant = union(enum) {
    none,
    cache: core.stream.Server.WriteCache,
    refused: Refusal,
    /// Until a thread has opened or closed this layer, which then asks again.
    waits: *Layer,
};

/// The text is for the boot, where the code is not enough.
pub const Refusal = struct { code: wire.RefuseCode, text: base.UntrustedText = .empty };

pub const Layer = cache_layer.Layer;
pub const LayerWork = cache_layer.LayerWork;
pub const WaitingHello = cache_layer.WaitingHello;

pub fn WriteCaches(comptime Io: type) type {
    return struct {
        const Self = @This();

        gpa: std.mem.Allocator,
        io: *Io,
        /// Files of the store's directory.
        files: store.Files,
        /// The directory of layers exists.
        has_parent: bool = false,
        /// Empty where this edge can keep no device's writes.
        layers: []?*Layer,
        /// Index behind the last open layer.
        top: usize = 0,
        /// Undefined where this edge can keep no device's writes.
        free_slots: base.SlotSet = undefined,
        by_boot: base.SlotIndex(u128) = undefined,
        by_device: base.SlotIndex(u128) = undefined,
        /// A maintenance version whose layer a store job holds for now.
        held_version: ?Uuid = null,
        /// Null where no device's writes can be kept.
        pool: ?*OrderPool = null,
        /// Layers that may have something to do for a thread, by slot.
        busy_slots: base.SlotSet = undefined,
        has_work: bool = false,
        /// The layer of the order for a snapshot, while a thread writes it.
        snapshot_slot: ?u32 = null,
        /// What the next program is given: no thread begins anything for layers any more.
        handed_over: ?store.Files.Handle = null,
        /// Why the layer of a boot could not be opened, while its HELLO is answered.
        failure: ?struct { boot_id: Uuid, err: OpenError } = null,

        /// `files` are those of the store's directory, in which `layers` is made where it is
        /// missing; `NotWritable` where the edge may not, and `wanted` needs it. A disk that
        /// refuses is tried again with the next layer.
        pub fn init(
            gpa: std.mem.Allocator,
            io: *Io,
            files: store.Files,
            capacity: u32,
            wanted: CacheSettings,
        ) error{ OutOfMemory, NotWritable }!Self {
            const has_parent = if (cache_layer.makeParent(files)) true else |err| blk: {
                if (err == error.Denied and wanted.class != .device_ram) return error.NotWritable;
                break :blk false;
            };
            const layers = try base.allocZeroed(gpa, ?*Layer, @as(?*Layer, null), capacity);
            errdefer base.freeZeroed(gpa, ?*Layer, layers);
            var free_slots: base.SlotSet = try .initFull(gpa, capacity);
            errdefer free_slots.deinit(gpa);
            var busy_slots: base.SlotSet = try .initEmpty(gpa, capacity);
            errdefer busy_slots.deinit(gpa);
            // Both keys are random, or a digest.
            var by_boot: base.SlotIndex(u128) = try .init(gpa, capacity, 0);
            errdefer by_boot.deinit(gpa);
            var by_device: base.SlotIndex(u128) = try .init(gpa, capacity, 0);
            errdefer by_device.deinit(gpa);
            const pool = try gpa.create(OrderPool);
            errdefer gpa.destroy(pool);
            pool.* = try .init(gpa);
            return .{
                .free_slots = free_slots,
                .busy_slots = busy_slots,
                .by_boot = by_boot,
                .by_device = by_device,
                .gpa = gpa,
                .io = io,
                .files = files,
                .has_parent = has_parent,
                .layers = layers,
                .pool = pool,
            };
        }

        pub fn deinit(layers: *Self, gpa: std.mem.Allocator) void {
            layers.closeAll();
            base.freeZeroed(gpa, ?*Layer, layers.layers);
            if (layers.pool) |pool| {
                pool.deinit(gpa);
                gpa.destroy(pool);
                layers.free_slots.deinit(gpa);
                layers.busy_slots.deinit(gpa);
                layers.by_boot.deinit(gpa);
                layers.by_device.deinit(gpa);
            }
            layers.* = undefined;
        }

        /// Closes all files as the end of the program does; syncs nothing. No thread works here.
        pub fn closeAll(layers: *Self) void {
            for (layers.layers) |*slot| if (slot.*) |layer| {
                const has_files = switch (layer.phase) {
                    .opening => layer.work.is_run and !std.meta.isError(layer.opening.result),
                    .open => true,
                    .closing => !layer.work.is_run,
                };
                if (layer.is_handed_over)
                    layer.inner.map.deinit(layers.gpa)
                else if (has_files)
                    layer.inner.close(layers.gpa);
                layer.pool.drop(&layer.orders);
                layers.leave(layer);
                layers.gpa.destroy(layer);
            };
            layers.top = 0;
        }

        /// Returns whether a thread has a layer that its process would have to settle.
        pub fn isWorking(layers: *const Self) bool {
            for (layers.layers[0..layers.top]) |place| if (place) |layer| {
                if (layer.phase == .closing or layer.isWriting() or layer.is_syncing) return true;
            };
            return false;
        }

        /// The process ends in order: the next one then knows each block that has rotted. Waits for
        /// disks, until `until_us` at most, and leaves out layers that threads work on.
        pub fn settleAll(layers: *Self, until_us: u64) void {
            for (layers.layers[0..layers.top]) |place| {
                const layer = place orelse continue;
                if (!layer.isOpen() or layer.isWriting() or layer.is_syncing) continue;
                if (layers.io.now() >= until_us) return;
                layer.inner.settle(&layer.batch);
            }
        }

        /// Returns caches that can keep no device's writes.
        pub fn none(gpa: std.mem.Allocator, io: *Io) Self {
            return .{ .gpa = gpa, .io = io, .files = undefined, .layers = &.{} };
        }

        pub fn isAvailable(layers: *const Self) bool {
            return layers.layers.len > 0;
        }

        pub fn find(layers: *const Self, boot_id: Uuid) ?*Layer {
            if (layers.top == 0) return null;
            var at = layers.by_boot.first(keyOf(boot_id));
            while (at) |slot| : (at = layers.by_boot.next(slot)) {
                const layer = layers.layers[slot].?;
                assert(layer.boot_id.eql(boot_id));
                if (layer.isOpen() and !layer.is_over) return layer;
            }
            return null;
        }

        fn keyOf(id: Uuid) u128 {
            return std.mem.readInt(u128, &id.bytes, .big);
        }

        /// A layer may have something to do for a thread.
        pub fn noteWork(layers: *Self, layer: *const Layer) void {
            assert(layers.layers[layer.slot] == layer);
            layers.busy_slots.set(layer.slot);
            layers.has_work = true;
        }

        /// Grants the write cache of a boot that opens or resumes its session; `below` stays valid
        /// as long as the boot is known.
        pub fn grant(
            layers: *Self,
            boot: *const core.boot.Boot,
            below: Below,
            wanted: CacheSettings,
            kind: wire.HelloKind,
        ) CacheGrant {
            if (layers.find(boot.identity.id)) |layer| {
                // The program before this one may have read another disk.
                if (!layer.isAbove(&below)) return .{ .refused = .{ .code = .cache_lost } };
                layer.setBelow(below.source);
                return .{ .cache = layer.cache() };
            }
            if (!wanted.class.isAtTheEdge()) return .none;
            if (layers.failure) |failure| if (failure.boot_id.eql(boot.identity.id))
                return .{ .refused = layers.refusalOf(boot, failure.err, kind) };
            const binding = bindingOf(boot, &below, &wanted);
            if (binding.class == .maintenance)
                if (layers.held_version) |held|
                    if (held.eql(binding.version_id))
                        return .{ .refused = layers.refusalOf(boot, error.Held, kind) };
            // The session was opened with a layer that ended with its process.
            if (wanted.class == .edge and boot.token_nonce != null and kind == .resumption and
                !mutants.has(.lost_cache_replaced))
                return .{ .refused = .{ .code = .cache_lost } };
            switch (layers.takeOver(&binding, boot.identity.id, wanted)) {
                .none => {},
                .busy => return .{ .refused = .{ .code = .busy } },
                .waits => |layer| return .{ .waits = layer },
                .layer => |layer| {
                    layer.setBelow(below.source);
                    return .{ .cache = layer.cache() };
                },
            }
            const layer = layers.open(boot, below.source, &binding, wanted, kind) catch |err|
                return .{ .refused = layers.refusalOf(boot, err, kind) };
            return .{ .waits = layer };
        }

        /// Closes the layer of a maintenance version unless its device is heard; nobody opens it
        /// while `held_version` names it.
        pub fn holdVersion(
            layers: *Self,
            version_id: Uuid,
            server: *const core.stream.Server,
            now_us: u64,
        ) HoldAnswer {
            var is_open = false;
            for (layers.layers[0..layers.top]) |place| {
                const layer = place orelse continue;
                if (!layer.isOf(version_id)) continue;
                if (layer.isHeard(server, now_us)) return .written;
                layers.end(layer);
                is_open = true;
            }
            layers.held_version = version_id;
            return if (is_open) .waiting else .held;
        }

        /// Lists maintenance versions whose devices are heard.
        pub fn writtenVersions(
            layers: *const Self,
            server: *const core.stream.Server,
            now_us: u64,
        ) core.uplink.store_inventory.Written {
            var written: core.uplink.store_inventory.Written = .empty;
            for (layers.layers[0..layers.top]) |place| {
                const layer = place orelse continue;
                const binding = &layer.binding;
                if (binding.class != .maintenance or !layer.isHeard(server, now_us)) continue;
                written.append(binding.version_id) catch break;
            }
            return written;
        }

        /// Runs once a second, and when a thread has written the layer that is wanted.
        pub fn tendSnapshot(layers: *Self) void {
            cache_snapshot.tend(layers);
        }

        /// Counts layers by fill level, as of the last `tick`.
        pub fn levels(layers: *const Self) FillCounts {
            var counts: FillCounts = @splat(0);
            for (layers.layers[0..layers.top]) |place| if (place) |layer| {
                if (layer.isOpen()) counts[@backingInt(layer.level)] += 1;
            };
            return counts;
        }

        /// Returns whether a thread opens or changes a layer that would be handed over.
        pub fn isBusy(layers: *const Self) bool {
            return cache_handover.isBusy(layers);
        }

        /// While not `isBusy`. After a failure everything is as before.
        pub fn handOver(layers: *Self) store.files.Error!void {
            return cache_handover.handOver(layers);
        }

        pub fn take(layers: *Self, handle: store.Files.Handle) void {
            cache_handover.take(layers, handle);
        }

        /// Counts layers that end with the process, those that are being opened as well.
        pub fn volatileCount(layers: *const Self) u32 {
            var count: u32 = 0;
            for (layers.layers[0..layers.top]) |place| if (place) |layer| {
                if (layer.class.isAtTheEdge() and !layer.class.isKept()) count += 1;
            };
            return count;
        }

        /// Runs once a second: closes durable layers whose devices are not heard; they send HELLO
        /// to continue.
        pub fn closeSilent(layers: *Self, server: *core.stream.Server, now_us: u64) void {
            for (layers.layers[0..layers.top]) |place| {
                const layer = place orelse continue;
                if (!layer.binding.class.isDurable() or layer.isInUse() or
                    layer.orders.count > 0 or layer.waiting_count > 0) continue;
                if (layer.snapshot != null) continue;
                if (server.sessionOf(layer.boot_id)) |session|
                    if (now_us -| session.last_packet_at_us < silent_us) continue;
                assert(!layer.isInUse());
                assert(layer.syncing_count == 0);
                server.forget(layer.boot_id);
                layers.end(layer);
            }
        }

        /// Takes a device's order; `waits` is answered after `endOrders`, or after `endSync`.
        pub fn takeOrder(layers: *Self, layer: *Layer, ref: WriteRef, order: Order) WriteOutcome {
            assert(!layer.is_over);
            if (layer.refusal(order)) |code| return .{ .ended = code };
            if (order == .flush and layer.orders.count == 0)
                return layers.outcomeOf(layer, &.{
                    .ref = ref,
                    .order = order,
                    .result = if (layer.isLost()) error.Lost else {},
                });
            if (!layer.pool.give(&layer.orders, ref, order)) return .later;
            layers.noteWork(layer);
            return if (mutants.has(.done_before_carried_out)) .{ .ended = .done } else .waits;
        }

        pub const EndedOrder = struct { ref: WriteRef, outcome: WriteOutcome };

        /// A thread has carried out orders: returns them one by one, oldest first; null: that was
        /// all, and the layer may be closed now.
        pub fn endOrders(layers: *Self, layer: *Layer) ?EndedOrder {
            assert(layer.work.is_run);
            if (layer.writing_count == layer.left_count) {
                if (layer.left_count > 0) layers.endWriting(layer);
                layers.noteWork(layer);
                if (layer.is_over) layers.end(layer);
                return null;
            }
            assert(layer.isOpen());
            assert(layer.orders.count >= layer.writing_count);
            const pending = layer.pool.takeFirst(&layer.orders);
            layer.writing_count -= 1;
            if (layer.writing_count == 0) layers.endWriting(layer);
            if (layer.refusal(pending.order)) |code|
                return .{ .ref = pending.ref, .outcome = .{ .ended = code } };
            return .{ .ref = pending.ref, .outcome = layers.outcomeOf(layer, &pending) };
        }

        /// The thread's orders are taken: the layer is the agent's again.
        fn endWriting(layers: *Self, layer: *Layer) void {
            assert(layer.writing_count == layer.left_count);
            layer.writing_count = 0;
            layer.left_count = 0;
            layer.inner.below = layer.below;
            if (layer.is_lost) layer.inner.is_lost = true;
            if (layers.snapshot_slot == layer.slot) layers.tendSnapshot();
        }

        fn outcomeOf(
            layers: *Self,
            layer: *Layer,
            pending: *const OrderPool.Pending,
        ) WriteOutcome {
            pending.result catch |err| return switch (err) {
                error.Full, error.NoSpace => |full| blk: {
                    layer.is_closed = true;
                    if (full == error.Full)
                        log_lines.full(layers.io, layer)
                    else
                        log_lines.diskFull(layers.io, layer);
                    break :blk .{ .ended = layer.refusal(pending.order).? };
                },
                error.BeyondTheEnd => .{ .ended = .beyond_the_end },
                error.Lost => blk: {
                    layer.lose();
                    log_lines.lost(layers.io, layer);
                    break :blk .{ .ended = .cache_lost };
                },
                // A sync comes first, or the disk below may be read again.
                error.Busy, error.ReadFailed, error.Damaged => .later,
            };
            if (!layer.binding.class.isDurable()) return .{ .ended = .done };
            if (mutants.has(.done_before_it_is)) return .{ .ended = .done };
            if (layer.waiting_count == layer.waiting.len) return .later;
            layer.waiting[layer.waiting_count] = pending.ref;
            layer.waiting_count += 1;
            layers.noteWork(layer);
            return .waits;
        }

        /// Runs at the end of a turn: gives threads what has come to layers, a sync first.
        pub fn beginWorks(layers: *Self) void {
            if (!layers.has_work or layers.handed_over != null) return;
            layers.has_work = false;
            layers.beginSyncs();
            var slots = layers.busy_slots.iterate();
            while (slots.next()) |slot| {
                // What it cannot do now it may do at the end of what hinders it.
                layers.busy_slots.unset(slot);
                const layer = layers.layers[slot].?;
                if (layer.orders.count == 0 or !layer.isOpen() or layer.isWriting()) continue;
                layer.writing_count = layer.pool.batchOf(&layer.orders);
                assert(layer.writing_count > 0);
                layer.inner.is_short = layers.io.isStoreShort();
                layer.work = .{ .layer = layer, .kind = .write };
                layers.start(&layer.work);
            }
        }

        /// Begins the syncs that writes wait for: one for everything that came to a layer since its
        /// last one.
        fn beginSyncs(layers: *Self) void {
            var slots = layers.busy_slots.iterate();
            while (slots.next()) |slot| {
                const layer = layers.layers[slot].?;
                if (!layer.isOpen() or layer.is_syncing or layer.waiting_count == 0) continue;
                // It changes the map of blocks.
                if (layer.isWriting()) continue;
                layer.is_syncing = true;
                layer.syncing_count = layer.waiting_count;
                assert(layer.syncing_count <= layer.waiting.len);
                layer.result = {};
                if (layer.inner.beginSync(&layer.batch) and !mutants.has(.sync_left_out))
                    layers.start(&layer.sync)
                else
                    layers.io.endWorkSoon(&layer.sync);
            }
        }

        fn start(layers: *Self, work: *LayerWork) void {
            work.is_run = false;
            if (layers.handed_over == null) layers.io.startWork(work);
        }

        /// A thread has opened or closed a layer: returns the HELLO that is to be answered now.
        /// `clearFailure` follows.
        pub fn endWork(layers: *Self, layer: *Layer) ?WaitingHello {
            assert(layer.work.is_run);
            assert(!layer.isOpen());
            const is_open = layer.phase == .opening and !std.meta.isError(layer.opening.result);
            if (is_open) {
                layer.phase = .open;
                layers.has_parent = true;
                if (layer.opening.has_removed) log_lines.removed(layers.io, layer);
                if (layer.is_over) {
                    // Who waits is answered when it is closed.
                    layers.end(layer);
                    return null;
                }
                defer layer.hello = null;
                return layer.hello;
            }
            if (layer.phase == .opening and !layer.is_over) layer.opening.result catch |err| {
                layers.failure = .{ .boot_id = layer.boot_id, .err = err };
            };
            defer layers.free(layer);
            return layer.hello;
        }

        /// The HELLO was answered.
        pub fn clearFailure(layers: *Self) void {
            layers.failure = null;
            assert(layers.top <= layers.layers.len);
        }

        /// Nobody needs the layer any more: it is closed when no thread uses it.
        fn end(layers: *Self, layer: *Layer) void {
            layer.is_over = true;
            if (layer.isInUse()) return;
            assert(layer.phase == .open);
            // Whoever opens it next would keep nothing.
            layer.endSnapshot();
            layer.phase = .closing;
            layer.work = .{ .layer = layer, .kind = .close };
            layers.start(&layer.work);
        }

        /// `Io` has synced a layer: returns the code of the writes that waited for it. `release`
        /// follows.
        pub fn endSync(layers: *Self, layer: *Layer) wire.WriteCode {
            assert(layer.is_syncing);
            if (std.meta.isError(layer.result)) layer.lose();
            if (!layer.isLost()) return .done;
            log_lines.lost(layers.io, layer);
            return .cache_lost;
        }

        pub fn release(layers: *Self, layer: *Layer) void {
            assert(layer.is_syncing);
            assert(layer.waiting_count >= layer.syncing_count);
            const left = layer.waiting_count - layer.syncing_count;
            std.mem.copyForwards(
                WriteRef,
                layer.waiting[0..left],
                layer.waiting[layer.syncing_count..layer.waiting_count],
            );
            layer.waiting_count = left;
            layer.syncing_count = 0;
            layer.is_syncing = false;
            layers.noteWork(layer);
            if (layer.is_over) layers.end(layer);
        }

        /// A thread reads from the layer: it stays open until `endRead`.
        pub fn beginRead(layers: *Self, layer: *Layer) void {
            assert(!layer.is_over);
            _ = layers;
            layer.reads += 1;
        }

        pub fn endRead(layers: *Self, layer: *Layer) void {
            assert(layer.reads > 0);
            layer.reads -= 1;
            if (layer.is_over) layers.end(layer);
        }

        /// Runs once a second: closes layers of boots that are gone, and raises alarms.
        pub fn tick(layers: *Self, now_us: u64, table: *core.boot.Table) void {
            for (layers.layers[0..layers.top]) |place| {
                const layer = place orelse continue;
                assert(layer.waiting_count <= layer.waiting.len);
                assert(layer.syncing_count <= layer.waiting_count);
                assert(layer.is_syncing or layer.syncing_count == 0);
                const boot = if (table.findById(layer.boot_id)) |ref| table.get(ref) else null;
                const is_over = boot == null or boot.?.hasSuccessor();
                // A persistent layer waits for the device's next boot, which takes it over.
                if (is_over and (boot == null or !layer.binding.class.isDurable()))
                    layers.end(layer);
                if (!layer.isOpen()) continue;
                const used = layer.inner.usedBytes();
                const limit = layer.inner.head.limit_bytes;
                if (layer.fill.note(now_us, used, limit)) |mark|
                    log_lines.fill(layers.io, layer, now_us, mark);
                const percent = store.layer_fill.percentOf(used, limit);
                layer.level = if (layer.is_closed) .full else .of(percent);
            }
        }

        const TakeOver = union(enum) { none, busy, waits: *Layer, layer: *Layer };

        /// Returns the layer of an earlier boot of the same device if it is still open. `waits`: a
        /// thread opens or closes one; `busy`: a thread uses it.
        fn takeOver(
            layers: *Self,
            binding: *const WriteLayer.Binding,
            boot_id: Uuid,
            wanted: CacheSettings,
        ) TakeOver {
            const slot = layers.by_device.first(keyOf(binding.device_id)) orelse return .none;
            const layer = layers.layers[slot].?;
            if (!layer.isOpen()) {
                // What is opened for an earlier boot, or as it was to be then, is closed again.
                const is_same = layer.boot_id.eql(boot_id) and
                    std.meta.eql(layer.binding, binding.*);
                if (!is_same) layers.end(layer);
                return .{ .waits = layer };
            }
            if (layer.isInUse()) return .busy;
            assert(!layer.is_over);
            const continues = binding.class.isDurable() and
                std.meta.eql(layer.binding, binding.*) and !layer.isLost();
            if (!continues) {
                layers.end(layer);
                return .{ .waits = layer };
            }
            assert(layer.syncing_count == 0);
            assert(layer.reads == 0);
            layer.boot_id = boot_id;
            layers.by_boot.set(layer.slot, keyOf(boot_id));
            layer.is_closed = false;
            layer.full = wanted.full;
            layer.inner.head.limit_bytes = limitOf(wanted, binding);
            layer.pool.drop(&layer.orders);
            layer.waiting_count = 0;
            return .{ .layer = layer };
        }

        fn open(
            layers: *Self,
            boot: *const core.boot.Boot,
            disk: store.BlockSource,
            binding: *const WriteLayer.Binding,
            wanted: CacheSettings,
            kind: wire.HelloKind,
        ) error{ OutOfMemory, TooMany }!*Layer {
            var random: [16]u8 = undefined;
            layers.io.random(&random);
            // The device must not see that it is another layer.
            if (mutants.has(.lost_cache_replaced)) random = boot.identity.id.bytes;
            const layer = try layers.enter(boot.identity.id, wanted.class, wanted.full, .{
                .gpa = layers.gpa,
                .files = layers.files,
                .layer_id = .fromRandom(random),
                .binding = binding.*,
                .below = disk,
                .limit_bytes = limitOf(wanted, binding),
                .kind = kind,
                .discards_another = wanted.of_another_version == .discard,
                .needs_parent = !layers.has_parent,
                .is_short = layers.io.isStoreShort(),
            });
            layer.opening.setDir(boot.identity.id, boot.assignment.vdisk_id);
            layers.start(&layer.work);
            return layer;
        }

        /// Enters a layer in the table.
        pub fn enter(
            layers: *Self,
            boot_id: Uuid,
            class: CacheClass,
            full: core.uplink.desired_state.WriteCacheFull,
            opening: cache_layer.Opening,
        ) error{ OutOfMemory, TooMany }!*Layer {
            const slot = layers.free_slots.first() orelse return error.TooMany;
            assert(layers.layers[slot] == null);
            const layer = try layers.gpa.create(Layer);
            layer.* = .{
                .slot = slot,
                .boot_id = boot_id,
                .device_id = opening.binding.device_id,
                .binding = opening.binding,
                .class = class,
                .full = full,
                .below = opening.below,
                .pool = layers.pool.?,
                .opening = opening,
                .work = .{ .layer = layer, .kind = .open },
                .sync = .{ .layer = layer, .kind = .sync },
            };
            layers.layers[slot] = layer;
            layers.free_slots.unset(slot);
            layers.by_boot.put(slot, keyOf(layer.boot_id));
            layers.by_device.put(slot, keyOf(layer.device_id));
            layers.top = @max(layers.top, slot + 1);
            assert(layers.top <= layers.layers.len);
            return layer;
        }

        fn free(layers: *Self, layer: *Layer) void {
            assert(!layer.isOpen());
            layers.leave(layer);
            while (layers.top > 0 and layers.layers[layers.top - 1] == null) layers.top -= 1;
            assert(layers.top == 0 or layers.layers[layers.top - 1] != layer);
            layer.pool.drop(&layer.orders);
            layers.gpa.destroy(layer);
        }

        /// Nothing finds the layer any more.
        fn leave(layers: *Self, layer: *const Layer) void {
            const slot = layer.slot;
            assert(layers.layers[slot] == layer);
            layers.layers[slot] = null;
            layers.free_slots.set(slot);
            layers.busy_slots.unset(slot);
            layers.by_boot.remove(slot);
            layers.by_device.remove(slot);
        }

        /// `Held`: a store job seals or removes it.
        const Blocker = OpenError || error{ Held, TooMany };

        fn refusalOf(
            layers: *Self,
            boot: *const core.boot.Boot,
            err: Blocker,
            kind: wire.HelloKind,
        ) Refusal {
            const mac = boot.identity.mac;
            if (boot.assignment.writes) return layers.refusalOfWriter(boot, err);
            switch (err) {
                error.AnotherVersion, error.AnotherSize => {
                    layers.io.log(
                        "{f}: its write cache belongs to another version of its disk; remove it, or give the device that version",
                        .{mac},
                    );
                    return .{ .code = .cache_version };
                },
                error.Lost, error.Damaged => {
                    layers.io.log("{f}: its write cache is {s}; nothing of it is served", .{
                        mac, if (err == error.Lost) "missing or truncated" else "damaged",
                    });
                    return .{ .code = .cache_lost };
                },
                else => {
                    layers.io.log("{f}: its write cache cannot be {s} ({t})", .{
                        mac, if (kind == .token) "made" else "opened", err,
                    });
                    return .{ .code = .cache_failed };
                },
            }
        }

        /// Explains a refusal to a maintenance version's device; the version below is never served
        /// in place of what was written.
        fn refusalOfWriter(layers: *Self, boot: *const core.boot.Boot, err: Blocker) Refusal {
            const code: wire.RefuseCode, const text = switch (err) {
                error.AnotherVersion, error.AnotherSize => .{
                    .cache_version,
                    "the writes belong to another version",
                },
                error.Lost => .{ .cache_lost, "the writes are missing or truncated" },
                error.Damaged => .{ .cache_lost, "the writes are damaged" },
                error.AnotherDevice => .{ .cache_failed, "another device writes this version" },
                error.AnotherClass => .{
                    .cache_failed,
                    "the layer in its place is not a version in maintenance",
                },
                error.InUse => .{ .cache_failed, "another process writes this version" },
                error.Held => .{ .cache_failed, "the version is being sealed or discarded" },
                error.NoSpace => .{ .cache_failed, "the edge's disk is full" },
                error.ReadOnly => .{ .cache_failed, "the edge's store is read-only" },
                error.NewerFormat => .{ .cache_failed, "a later edge has written this version" },
                else => .{ .cache_failed, "the edge's store cannot be written" },
            };
            layers.io.log("{f}: it cannot write version {f}: {s}", .{
                boot.identity.mac, boot.assignment.version_id, text,
            });
            return .{ .code = code, .text = .init(text) };
        }
    };
}

fn limitOf(wanted: CacheSettings, binding: *const WriteLayer.Binding) u64 {
    return wanted.limit_bytes orelse
        std.mem.alignForward(u64, binding.disk_size, WriteLayer.block_size);
}

fn bindingOf(
    boot: *const core.boot.Boot,
    below: *const Below,
    wanted: *const CacheSettings,
) WriteLayer.Binding {
    return .{
        .class = if (wanted.writes_version) .maintenance else switch (wanted.class) {
            .device_ram, .device_ram_local_disk => unreachable,
            .edge, .device_ram_overflow => .edge,
            .edge_persistent => .edge_persistent,
            .private => .private,
        },
        .device_id = deviceIdOf(&boot.assignment, boot.identity.mac),
        .version_id = boot.assignment.version_id,
        .version_root = below.root,
        .disk_size = below.source.size,
    };
}

/// Returns the id of a device; one that is in no desired state gets an id derived from its MAC
/// address.
pub fn deviceIdOf(assignment: *const core.boot.Assignment, mac: base.Mac) Uuid {
    if (assignment.device_id) |id| return id;
    var digest: [32]u8 = undefined;
    base.Sha256.hash(&mac.bytes, &digest, .{});
    return .fromRandom(digest[0..16].*);
}

/// What an edge logs about write caches.
const log_lines = struct {
    fn removed(io: anytype, layer: *const Layer) void {
        io.log(
            "write cache of device {f}: its writes above another version were removed",
            .{layer.device_id},
        );
    }

    fn lost(io: anytype, layer: *const Layer) void {
        if (layer.inner.rotten_at) |offset| return io.log(
            "write cache of device {f}: the block at byte {d} has changed on the disk; the " ++
                "device's disk stops. Restore the device's writes, or drop them",
            .{ layer.device_id, offset },
        );
        io.log(
            "write cache of device {f}: the disk failed; nothing of it is served any more",
            .{layer.device_id},
        );
    }

    fn full(io: anytype, layer: *const Layer) void {
        io.log("write cache of device {f} is full ({d} MiB): {s}", .{
            layer.device_id,
            layer.inner.head.limit_bytes >> 20,
            switch (layer.full) {
                .stop => "the device's disk is suspended, as chosen; increase the limit and " ++
                    "restart the device",
                .read_only => "the device continues, but cannot write until it restarts",
            },
        });
    }

    /// The layer is within its limit; other files may have filled the disk.
    fn diskFull(io: anytype, layer: *const Layer) void {
        io.log("write cache of device {f}: the disk of the store is {s}full: {s}", .{
            layer.device_id,
            if (layer.inner.is_short) "almost " else "",
            switch (layer.full) {
                .stop => "the device's disk is suspended, as chosen; free some space there and " ++
                    "restart the device",
                .read_only => "the device continues, but cannot write until it restarts",
            },
        });
    }

    fn fill(io: anytype, layer: *const Layer, now_us: u64, mark: u8) void {
        const used, const limit = .{ layer.inner.usedBytes(), layer.inner.head.limit_bytes };
        if (mark == 100) return io.log(
            "write cache of device {f} has no more capacity ({d} MiB): a write that needs more {s}",
            .{ layer.device_id, limit >> 20, switch (layer.full) {
                .stop => "suspends the device's disk",
                .read_only => "fails, and so do all writes after it",
            } },
        );
        const seconds = layer.fill.secondsUntilFull(now_us, used, limit) orelse return io.log(
            "write cache of device {f} is {d} % full ({d} of {d} MiB)",
            .{ layer.device_id, mark, used >> 20, limit >> 20 },
        );
        io.log(
            "write cache of device {f} is {d} % full ({d} of {d} MiB); at this rate, it is full " ++
                "in {d} min",
            .{ layer.device_id, mark, used >> 20, limit >> 20, seconds / 60 },
        );
    }
};

test {
    _ = @import("write_caches_test.zig");
}
