//! Merges versions: creates a version of the same bytes with a shorter chain, as a new base or as
//! an update of an earlier version. Each version has a complete tree, so the merged version has the
//! same root as its source, and a merge writes one manifest however long the chain is. The merged
//! versions stay until they are deleted.

const std = @import("std");
const base = @import("base");
const manifest_module = @import("tree/manifest.zig");
const simulated = @import("simulated.zig");
const store_dir = @import("files/store_dir.zig");
const Uuid = base.Uuid;

const Change = store_dir.Change;

/// `OtherVdisk`: the version below belongs to another vDisk. `NotBelow`: it is not an ancestor of
/// the source.
pub const Error = store_dir.Error || store_dir.VersionError || error{ OtherVdisk, NotBelow };

pub const Request = struct {
    /// The version whose bytes the merged version has.
    of: Uuid,
    /// Null creates a new base.
    onto: ?Uuid,
    version: Uuid,
    number: u32,
    created_unix_ms: u64,
};

/// More than a vDisk has. The limit ends the search where parents form a cycle.
const chain_max = 100_000;

/// Throws `Exists` if the id is taken.
pub fn merge(change: *Change, request: Request) Error!void {
    const store = change.store;
    const of = try store.manifestOf(request.of);
    if (request.onto) |below| try checkBelow(store, &of, below);
    var made = of;
    made.version = request.version;
    made.parent = request.onto orelse .zero;
    made.number = request.number;
    made.created_unix_ms = request.created_unix_ms;
    made.counter = try change.nextCounter();
    if (simulated.has(.merge_of_the_parent)) if (store.manifestOf(of.parent)) |parent| {
        made.root = parent.root;
    } else |_| {};
    try change.commit(&made);
}

fn checkBelow(
    store: *store_dir.Store,
    of: *const manifest_module.Manifest,
    below: Uuid,
) Error!void {
    const lower = try store.manifestOf(below);
    if (!lower.vdisk.eql(of.vdisk)) return error.OtherVdisk;
    var parent = of.parent;
    for (0..chain_max) |_| {
        if (parent.eql(below)) return;
        if (parent.eql(.zero)) return error.NotBelow;
        // The chain cannot be followed beyond a deleted parent.
        const manifest = store.manifestOf(parent) catch |err| switch (err) {
            error.NotFound => return error.NotBelow,
            else => return err,
        };
        parent = manifest.parent;
    }
    return error.NotBelow;
}
