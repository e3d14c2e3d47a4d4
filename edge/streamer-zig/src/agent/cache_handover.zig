//! Hands the write caches that end with the process to the program that takes its place in that
//! process (docs/decisions/0048-hand-over-of-write-caches.md), and takes them from the one before.
//! A layer goes to the boot that has it, and to no other; one that has failed goes to nobody, so
//! that its device hears that its cache is lost.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const cache_layer = @import("cache_layer.zig");
const mutants = @import("mutants.zig");
const assert = std.debug.assert;

const CacheClass = core.boot.Guest.CacheClass;
const Full = core.uplink.desired_state.WriteCacheFull;
const Handle = store.Files.Handle;
const Handover = store.LayerHandover;
const Layer = cache_layer.Layer;

/// Name of the hand-over in the store's directory, for a moment.
const file_name = "cache-handover";

/// What a layer is besides its files.
pub const Owner = struct {
    boot_id: base.Uuid,
    class: CacheClass,
    full: Full,
    /// It was full, and takes no writes any more.
    is_closed: bool,

    const Layout = extern struct {
        boot_id: [16]u8,
        class: u8,
        full: u8,
        is_closed: u8,
        reserved: [13]u8 = @splat(0),
    };

    comptime {
        assert(@sizeOf(Layout) == store.LayerHandover.owner_size);
    }

    fn of(layer: *const Layer) Owner {
        return .{
            .boot_id = layer.boot_id,
            .class = layer.class,
            .full = layer.full,
            .is_closed = layer.is_closed,
        };
    }

    /// The numbers stay as they are: another release reads them.
    fn emit(owner: *const Owner) Handover.Owner {
        return std.mem.toBytes(Layout{
            .boot_id = owner.boot_id.bytes,
            .class = switch (owner.class) {
                .edge => 1,
                .device_ram_overflow => 2,
                // On the disk, or at the device.
                .device_ram, .device_ram_local_disk, .edge_persistent, .private => unreachable,
            },
            .full = switch (owner.full) {
                .stop => 1,
                .read_only => 2,
            },
            .is_closed = @intFromBool(owner.is_closed),
        });
    }

    fn parse(bytes: *const Handover.Owner) error{Damaged}!Owner {
        const layout: *const Layout = @ptrCast(bytes);
        return .{
            .boot_id = .fromBytes(layout.boot_id),
            .class = switch (layout.class) {
                1 => .edge,
                2 => .device_ram_overflow,
                else => return error.Damaged,
            },
            .full = switch (layout.full) {
                1 => .stop,
                2 => .read_only,
                else => return error.Damaged,
            },
            .is_closed = layout.is_closed != 0,
        };
    }
};

/// A thread opens or changes a layer that would be handed over.
pub fn isBusy(layers: anytype) bool {
    for (layers.layers[0..layers.top]) |place| if (place) |layer| {
        if (layer.binding.class.isDurable()) continue;
        // In the middle of an opening, its files have names, which would stay.
        if (layer.phase == .opening or layer.isWriting()) return true;
    };
    return false;
}

/// Writes what the next program needs, while nobody opens these layers or writes to them; nobody
/// does afterwards. After a failure everything is as before.
pub fn handOver(layers: anytype) store.files.Error!void {
    assert(!isBusy(layers));
    assert(layers.handed_over == null);
    var handover: Handover = try .begin(layers.files, file_name);
    errdefer handover.cancel();
    for (layers.layers[0..layers.top]) |place| if (place) |layer| {
        if (!passes(layer)) continue;
        try handover.add(&layer.inner, &Owner.of(layer).emit());
    };
    layers.handed_over = try handover.end();
    for (layers.layers[0..layers.top]) |place| if (place) |layer| {
        layer.is_handed_over = passes(layer);
    };
}

fn passes(layer: *const Layer) bool {
    return !layer.binding.class.isDurable() and layer.isOpen() and !layer.is_over and
        !layer.isLost() and !mutants.has(.caches_left_behind);
}

/// Takes what the program before this one has handed over; the boots are loaded later, and `tick`
/// closes the layers of those that are gone.
pub fn take(layers: anytype, handle: Handle) void {
    var count: u32 = 0;
    takeAll(layers, handle, &count) catch |err| layers.io.log(
        "Write caches cannot be taken over from the program before ({t}): their devices hear " ++
            "that they are lost.",
        .{err},
    );
    layers.io.log("{d} write caches are taken over from the program before.", .{count});
}

fn takeAll(
    layers: anytype,
    handle: Handle,
    count: *u32,
) (Handover.TakeError || error{TooMany})!void {
    var taking: Handover.Taking = try .begin(layers.files, handle);
    defer taking.end();
    while (try taking.next(layers.gpa)) |taken| {
        var inner = taken.layer;
        errdefer inner.close(layers.gpa);
        const owner: Owner = try .parse(&taken.owner);
        const layer = try layers.enter(owner.boot_id, owner.class, owner.full, .{
            .gpa = layers.gpa,
            .files = layers.files,
            .layer_id = inner.head.layer_id,
            .binding = inner.head.binding,
            .below = inner.below,
            .limit_bytes = inner.head.limit_bytes,
            .kind = .resumption,
            .discards_another = false,
            .needs_parent = false,
            .is_short = false,
        });
        layer.inner = inner;
        layer.is_closed = owner.is_closed;
        layer.phase = .open;
        count.* += 1;
    }
}

test {
    _ = @import("cache_handover_test.zig");
}
