//! The operations of the simulation, and the kind of disk that they run on.

const std = @import("std");
const SimFiles = @import("../kit/sim_files.zig");
const StoreDevice = @import("device.zig");
const store = @import("store");

const block = store.block;
const blocks = StoreDevice.blocks;
const sector_size = StoreDevice.sector_size;
const sectors = StoreDevice.sectors;
const sectors_per_block = StoreDevice.sectors_per_block;

/// Location of the four blocks, and whether the disk ends in the middle of the last.
pub const Geometry = struct {
    is_far: bool = false,
    is_cut_short: bool = false,

    pub fn places(geometry: Geometry) [blocks]u64 {
        return if (geometry.is_far) .{ 0, 101, 102, 205 } else .{ 0, 1, 2, 3 };
    }

    pub fn sectorCount(geometry: Geometry) usize {
        return if (geometry.is_cut_short) sectors - 5 else sectors;
    }

    pub fn diskSize(geometry: Geometry) u64 {
        return geometry.places()[blocks - 1] * block.block_size +
            (geometry.sectorCount() + sectors_per_block - sectors) * sector_size;
    }
};

/// The device whose layer is written.
pub const LayerKind = enum { maintenance, persistent, fleeting };

pub const Range = struct { who: LayerKind = .maintenance, first: u8, count: u8 };

pub const Operation = union(enum) {
    write: Range,
    write_part: Range,
    discard: Range,
    flush: LayerKind,
    /// The two halves of a flush; the device keeps writing in between.
    sync_begin: LayerKind,
    sync_end: LayerKind,
    read: LayerKind,
    /// The persistent layer as it is now, which the device keeps writing to; all of its blocks are
    /// read in a few steps.
    snapshot,
    snapshot_step,
    seal,
    merge,
    import,
    /// All versions are packed again, also those that devices read.
    compress,
    revert,
    /// A device boots another version.
    boot: LayerKind,
    /// The process ends, the machine runs on.
    kill,
    /// Power is cut.
    crash,
    /// A block of a version rots, and is repaired with another store's bytes.
    repair,
};
pub const Kind = std.meta.Tag(Operation);

/// Whether and how the operation is interrupted.
pub const Cut = struct {
    /// Changing calls until then.
    calls: u64,
    how: enum { kill, crash },
    loss: SimFiles.Loss = .any,
};
