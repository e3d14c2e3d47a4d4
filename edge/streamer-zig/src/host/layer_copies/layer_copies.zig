//! Both sides of copies of write layers at an edge: it makes its own for another edge, and keeps
//! those of other edges.

const std = @import("std");
const CopyFetcher = @import("copy_fetcher.zig");
const CopyMaker = @import("copy_maker.zig");
const DataDir = @import("../files/data_dir.zig");
const SitePeers = @import("../difference/site_peers.zig");

pub const LayerCopies = @This();

fetcher: *CopyFetcher,
maker: CopyMaker,

/// Everything outlives it.
pub const Options = struct {
    peers: *SitePeers,
    data: *const DataDir,
    store_path: []const u8,
    data_path: []const u8,
    /// Bytes of the store's file system that copies leave free; null: the usual.
    reserve_bytes: ?u64,
};

pub fn create(gpa: std.mem.Allocator, options: Options) error{OutOfMemory}!*LayerCopies {
    const copies = try gpa.create(LayerCopies);
    copies.* = .{
        .fetcher = try .create(gpa, .{
            .peers = options.peers,
            .store_path = options.store_path,
            .reserve_bytes = options.reserve_bytes,
        }),
        .maker = .init(gpa, .{
            .peers = options.peers,
            .data = options.data,
            .store_path = options.store_path,
            .data_path = options.data_path,
            .reserve_bytes = options.reserve_bytes,
        }),
    };
    return copies;
}

/// Both threads run until the process ends.
pub fn start(copies: *LayerCopies) std.Thread.SpawnError!void {
    try copies.fetcher.start();
    try copies.maker.start();
}

/// As of the last time that other edges were asked.
pub const Figures = struct {
    held: u32 = 0,
    /// Of the oldest copy; 0: there is none.
    oldest_unix_ms: u64 = 0,
    /// Copies that this edge is to have, and could not bring up to date.
    behind: u32 = 0,
};

pub fn figures(copies: *const LayerCopies) Figures {
    const fetcher = copies.fetcher;
    return .{
        .held = fetcher.held_count.load(.monotonic),
        .oldest_unix_ms = fetcher.oldest_unix_ms.load(.monotonic),
        .behind = fetcher.behind_count.load(.monotonic),
    };
}
