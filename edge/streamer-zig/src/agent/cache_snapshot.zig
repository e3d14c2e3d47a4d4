//! Begins and ends snapshots of write caches that devices write to (store/layers/snapshot.zig).
//! Somebody else reads them, one at a time; the moment is the agent's.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const cache_layer = @import("cache_layer.zig");
const assert = std.debug.assert;

const Layer = cache_layer.Layer;
const LayerSnapshot = store.LayerSnapshot;

/// What somebody who takes a snapshot of a layer wants.
pub const Order = struct {
    /// Name of the layer's directory.
    layer: base.Uuid,
    /// Stays where it is until it is let go.
    snapshot: *LayerSnapshot,
    /// It is to be let go, whether the layer still has it or not.
    is_over: bool,
};

/// `not_open`: nobody writes the layer here.
pub const Answer = enum { begun, not_open, lost, let_go };

/// Carries out the order, or leaves it until no thread writes the layer: between two batches of
/// orders is a moment. One of which a part is carried out belongs to neither side of it.
pub fn tend(layers: anytype) void {
    layers.snapshot_slot = null;
    const order: Order = layers.io.snapshotOrder() orelse return;
    const found = if (order.is_over)
        find(layers, order.snapshot)
    else
        findNamed(layers, order.layer);
    const layer = found orelse
        return layers.io.answerSnapshot(if (order.is_over) .let_go else .not_open);
    const is_moment = if (order.is_over) !layer.isWriting() else layer.isBetweenOrders();
    if (!is_moment) {
        layers.snapshot_slot = layer.slot;
        return;
    }
    if (order.is_over) {
        layer.endSnapshot();
        return layers.io.answerSnapshot(.let_go);
    }
    assert(layer.snapshot == null);
    assert(!layer.is_over);
    order.snapshot.begin(&layer.inner) catch |err|
        return layers.io.answerSnapshot(if (err == error.Lost) .lost else .not_open);
    layer.snapshot = order.snapshot;
    layers.io.answerSnapshot(.begun);
}

fn find(layers: anytype, snapshot: *const LayerSnapshot) ?*Layer {
    for (layers.layers[0..layers.top]) |place| if (place) |layer| {
        if (layer.snapshot == snapshot) return layer;
    };
    return null;
}

/// Finds an open layer by the name of its directory.
fn findNamed(layers: anytype, name: base.Uuid) ?*Layer {
    var buffer: store.files.Name = undefined;
    const dir = store.device_layers.dirOf(name, &buffer);
    for (layers.layers[0..layers.top]) |place| if (place) |layer| {
        if (layer.isOpen() and !layer.is_over and layer.isIn(dir)) return layer;
    };
    return null;
}

test {
    _ = @import("cache_snapshot_test.zig");
}
