//! The super block, the group descriptors and the bitmaps (kernel.org, filesystems/ext4, "Super
//! Block", "Block Group Descriptors", "Block and Inode Bitmaps").

const std = @import("std");
const crc32c = @import("../crc32c.zig");
const fields = @import("fields.zig");
const Layout = @import("layout.zig");
const Plan = @import("plan.zig");
const Sink = @import("sink.zig");
const put = fields.put;

const block_size = Layout.block_size;
const super_size = 1024;

const compat = 0x4 | 0x8 | 0x20; // has_journal, ext_attr, dir_index
const incompat = 0x2 | 0x40 | 0x80 | 0x200; // filetype, extents, 64bit, flex_bg
/// sparse_super, large_file, huge_file, dir_nlink, extra_isize, metadata_csum
const ro_compat = 0x1 | 0x2 | 0x8 | 0x20 | 0x40 | 0x400;

const flag_inodes_unused = 0x1;
const flag_blocks_unused = 0x2;
const flag_table_zeroed = 0x4;

pub const Identity = struct {
    uuid: [16]u8,
    hash_seed: [16]u8,
    /// All checksums start with the UUID.
    seed: u32,

    pub fn of(digest: [32]u8) Identity {
        var uuid = digest[0..16].*;
        // Version 8, which is for identifiers made in a manner of one's own (RFC 9562, 5.8).
        uuid[6] = 0x80 | uuid[6] & 0x0f;
        uuid[8] = 0x80 | uuid[8] & 0x3f;
        return .{
            .uuid = uuid,
            .hash_seed = digest[16..32].*,
            .seed = crc32c.update(crc32c.initial, &uuid),
        };
    }
};

pub fn secondsOf(plan: *const Plan) u32 {
    return @intCast(std.math.clamp(plan.time, 0, std.math.maxInt(i32)));
}

/// `journal`: what the journal's inode says of its places.
pub fn write(
    plan: *const Plan,
    identity: *const Identity,
    journal: *const [60]u8,
    sink: Sink,
) (Sink.Error || error{OutOfMemory})!void {
    const layout = &plan.layout;
    const descriptors = try plan.arena.alloc(u8, @as(usize, layout.descriptor_blocks) * block_size);
    @memset(descriptors, 0);
    var free_blocks: u64 = 0;
    for (0..layout.groups) |group| {
        const one = descriptors[group * Layout.descriptor_size ..][0..Layout.descriptor_size];
        free_blocks += layout.freeOf(@intCast(group));
        try writeGroup(plan, identity, @intCast(group), one, sink);
    }
    var super: [super_size]u8 = @splat(0);
    fill(&super, plan, identity, free_blocks);
    @memcpy(super[0x10c..][0..60], journal);
    put(u32, &super, 0x10c + 64, layout.journal_blocks * block_size);
    for (0..layout.groups) |group| {
        if (!Layout.hasCopies(@intCast(group))) continue;
        put(u16, &super, 0x5a, @intCast(group));
        put(u32, &super, 0x3fc, crc32c.update(crc32c.initial, super[0..0x3fc]));
        const first = @as(u64, group) * Layout.blocks_per_group * block_size;
        try sink.write(&super, first + if (group == 0) super_size else @as(u64, 0));
        try sink.write(descriptors, first + block_size);
    }
}

/// Inodes of a group that are in use: those before the first file, then all up to the last.
fn inodesUsed(plan: *const Plan, group: u32) u32 {
    const total = Layout.first_inode - 2 + plan.order.len;
    const before = @as(u64, group) * plan.layout.inodes_per_group;
    return @intCast(@min(total -| before, plan.layout.inodes_per_group));
}

fn directoriesOf(plan: *const Plan, group: u32) u32 {
    var found: u32 = 0;
    for (plan.order) |index| {
        const inode = plan.tree.at(index);
        if (inode.kind != .directory) continue;
        if ((inode.plan.number - 1) / plan.layout.inodes_per_group == group) found += 1;
    }
    return found;
}

fn writeGroup(
    plan: *const Plan,
    identity: *const Identity,
    group: u32,
    one: *[Layout.descriptor_size]u8,
    sink: Sink,
) Sink.Error!void {
    const layout = &plan.layout;
    const inodes = inodesUsed(plan, group);
    const copies: u32 = if (Layout.hasCopies(group)) 1 + layout.descriptor_blocks else 0;
    const free = layout.freeOf(group);
    const is_last = group + 1 == layout.groups;
    // Nobody needs the bitmap of a group that has nothing but copies.
    const has_blocks = is_last or free != layout.blocksOf(group) - copies;
    const block_bitmap = layout.first_block_bitmap + group;
    const inode_bitmap = layout.first_inode_bitmap + group;
    const table = layout.inode_tables[group];
    for ([_]u64{ block_bitmap, inode_bitmap, table }, 0..) |place, index| {
        put(u32, one, 4 * index, @truncate(place));
        put(u32, one, 0x20 + 4 * index, @intCast(place >> 32));
    }
    const free_inodes = layout.inodes_per_group - inodes;
    const directories = if (inodes == 0) 0 else directoriesOf(plan, group);
    for ([_]u32{ free, free_inodes, directories }, 0..) |number, index| {
        put(u16, one, 0xc + 2 * index, fields.low16(number));
        put(u16, one, 0x2c + 2 * index, fields.high16(number));
    }
    put(u16, one, 0x1c, fields.low16(free_inodes));
    put(u16, one, 0x32, fields.high16(free_inodes));
    var flags: u16 = flag_table_zeroed;
    if (has_blocks) {
        const bitmap = layout.bitmapOf(group);
        try sink.write(bitmap, block_bitmap * block_size);
        const sum = crc32c.update(identity.seed, bitmap);
        put(u16, one, 0x18, fields.low16(sum));
        put(u16, one, 0x38, fields.high16(sum));
    } else flags |= flag_blocks_unused;
    if (inodes > 0) {
        var bitmap: [block_size]u8 = @splat(0);
        for (0..inodes) |bit| set(&bitmap, bit);
        for (layout.inodes_per_group..bitmap.len * 8) |bit| set(&bitmap, bit);
        try sink.write(&bitmap, inode_bitmap * block_size);
        const sum = crc32c.update(identity.seed, bitmap[0 .. layout.inodes_per_group / 8]);
        put(u16, one, 0x1a, fields.low16(sum));
        put(u16, one, 0x3a, fields.high16(sum));
    } else flags |= flag_inodes_unused;
    put(u16, one, 0x12, flags);
    var number: [4]u8 = undefined;
    put(u32, &number, 0, group);
    const sum = crc32c.update(crc32c.update(identity.seed, &number), one);
    put(u16, one, 0x1e, fields.low16(sum));
}

fn set(bitmap: *[block_size]u8, bit: usize) void {
    bitmap[bit / 8] |= @as(u8, 1) << @intCast(bit % 8);
}

fn fill(
    super: *[super_size]u8,
    plan: *const Plan,
    identity: *const Identity,
    free_blocks: u64,
) void {
    const layout = &plan.layout;
    const inodes = layout.inodes_per_group * layout.groups;
    const seconds = secondsOf(plan);
    const used: u32 = @intCast(Layout.first_inode - 2 + plan.order.len);
    for ([_]struct { usize, u32 }{
        .{ 0x0, inodes },
        .{ 0x4, @truncate(layout.blocks) },
        .{ 0xc, @truncate(free_blocks) },
        .{ 0x10, inodes - used },
        .{ 0x18, 2 },
        .{ 0x1c, 2 },
        .{ 0x20, Layout.blocks_per_group },
        .{ 0x24, Layout.blocks_per_group },
        .{ 0x28, layout.inodes_per_group },
        .{ 0x30, seconds },
        .{ 0x40, seconds },
        .{ 0x4c, 1 },
        .{ 0x54, Layout.first_inode },
        .{ 0x5c, compat },
        .{ 0x60, incompat },
        .{ 0x64, ro_compat },
        .{ 0xe0, 8 },
        // user_xattr and acl
        .{ 0x100, 0xc },
        .{ 0x108, seconds },
        .{ 0x150, @intCast(layout.blocks >> 32) },
        .{ 0x158, @intCast(free_blocks >> 32) },
        // Names are hashed as unsigned characters.
        .{ 0x160, 2 },
    }) |field| put(u32, super, field[0], field[1]);
    for ([_]struct { usize, u16 }{
        .{ 0x36, 0xffff },
        .{ 0x38, 0xef53 },
        // Unmounted; after an error, continue.
        .{ 0x3a, 1 },
        .{ 0x3c, 1 },
        .{ 0x58, Layout.inode_size },
        .{ 0xfe, Layout.descriptor_size },
        .{ 0x15c, 32 },
        .{ 0x15e, 32 },
    }) |field| put(u16, super, field[0], field[1]);
    @memcpy(super[0x68..][0..16], &identity.uuid);
    @memcpy(super[0xec..][0..16], &identity.hash_seed);
    // half_md4; a copy of the journal's places; groups of 16 groups; CRC-32C.
    super[0xfc] = 1;
    super[0xfd] = 1;
    super[0x174] = 4;
    super[0x175] = 1;
}
