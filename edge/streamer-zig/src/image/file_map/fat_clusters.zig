//! The clusters of a file of FAT, and the tables before them.

const fat_module = @import("../fat.zig");
const Place = @import("place.zig");
const Fat = fat_module.Fat;

pub const Error = fat_module.Error || Place.Error;

/// A chain that runs in a circle ends with the number of clusters that there are.
pub fn addFile(fat: *const Fat, node: fat_module.Node, place: *const Place, name: u32) Error!void {
    if (node.is_fixed_root) return place.add(fat.root_at, node.size, name);
    if (!node.is_directory and node.size == 0) return;
    fat.check(node.cluster) catch return;
    var cluster = node.cluster;
    for (0..fat.clusters) |_| {
        const at = fat.data_at + @as(u64, cluster - 2) * fat.cluster_size;
        try place.add(at, fat.cluster_size, name);
        cluster = try fat.nextCluster(cluster) orelse return;
    }
    return error.Corrupt;
}

pub fn addAreas(fat: *const Fat, place: *const Place) Error!void {
    try place.add(0, fat.table_at, try place.addArea("boot sectors"));
    try place.add(fat.table_at, fat.root_at - fat.table_at, try place.addArea("allocation tables"));
}
