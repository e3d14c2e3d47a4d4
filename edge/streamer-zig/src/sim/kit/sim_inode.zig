//! A file of the simulated disk: its pages as they are visible, and as they are durable.

const std = @import("std");
const base = @import("base");
const store = @import("store");

pub const page_size = 4096;
const sector_size = 512;
const sectors_per_page = page_size / sector_size;

pub const Page = [page_size]u8;

/// The fate of unsynced writes. `bytes`: names reach the disk and bytes do not, as on a file system
/// that journals names alone; `names`: the other way round.
pub const Loss = enum { any, all, nothing, bytes, names };

/// The pages of a disk, and the chance that decides what a crash does to them.
pub const Pages = struct {
    gpa: std.mem.Allocator,
    prng: base.Prng,
    /// Free pages for reuse.
    pool: std.ArrayList(*Page) = .empty,

    pub fn deinit(pages: *Pages) void {
        for (pages.pool.items) |page| pages.gpa.destroy(page);
        pages.pool.deinit(pages.gpa);
        pages.* = undefined;
    }
};

pub const Inode = struct {
    is_dir: bool,
    size: u64 = 0,
    /// By page index; the file is a hole behind the last one.
    slots: std.ArrayList(Slot) = .empty,
    /// Indices of the pages that changed since the last sync.
    noted: std.ArrayList(u32) = .empty,
    synced_size: u64 = 0,
    page_count: u32 = 0,
    /// The name it was created with, for mutants of its calls.
    made_as: base.BoundedArray(u8, store.files.name_size_max) = .empty,

    pub fn page(inode: *const Inode, index: u64) ?*Page {
        return if (index < inode.slots.items.len) inode.slots.items[@intCast(index)].now else null;
    }
};

pub const Slot = struct {
    /// What readers see; null for a hole.
    now: ?*Page = null,
    /// If it changed since the last sync: the durable content, null for a hole.
    synced: ?*Page = null,
    is_noted: bool = false,
};

/// An unsynced sector is the old or the new one.
pub fn tear(pages: *Pages, inode: *Inode, loss: Loss) void {
    const zeros: Page = @splat(0);
    for (inode.noted.items) |index| {
        const slot = &inode.slots.items[index];
        // One bit for each sector: whether it is the new one.
        const kept: u8 = switch (loss) {
            .any => @truncate(pages.prng.nextU32()),
            .all, .bytes => 0,
            .nothing, .names => 0xff,
        };
        const has_page = (kept != 0 and slot.now != null) or (kept != 0xff and slot.synced != null);
        const new = slot.now orelse &zeros;
        const old = slot.synced orelse &zeros;
        var page: Page = undefined;
        for (0..sectors_per_page) |sector| {
            const from = if (kept >> @intCast(sector) & 1 != 0) new else old;
            page[sector * sector_size ..][0..sector_size].* =
                from[sector * sector_size ..][0..sector_size].*;
        }
        if (has_page) pageOf(pages, inode, index).* = page else dropPage(pages, inode, index);
    }
    const synced_size = inode.synced_size;
    settle(pages, inode);
    const least, const most = .{ @min(inode.size, synced_size), @max(inode.size, synced_size) };
    inode.size = switch (loss) {
        .any => switch (pages.prng.below(3)) {
            0 => least,
            1 => most,
            else => pages.prng.between(least, most),
        },
        .all, .bytes => synced_size,
        .nothing, .names => inode.size,
    };
    cut(pages, inode);
    inode.synced_size = inode.size;
}

/// Clears everything behind the end of a file.
pub fn cut(pages: *Pages, inode: *Inode) void {
    const last = inode.size / page_size;
    const within: usize = @intCast(inode.size % page_size);
    if (inode.page(last)) |page| @memset(page[within..], 0);
    var index = std.mem.alignForward(u64, inode.size, page_size) / page_size;
    while (index < inode.slots.items.len) : (index += 1) dropPage(pages, inode, index);
}

pub fn settle(pages: *Pages, inode: *Inode) void {
    for (inode.noted.items) |index| {
        const slot = &inode.slots.items[index];
        if (slot.synced) |page| giveBack(pages, page);
        slot.synced = null;
        slot.is_noted = false;
    }
    inode.noted.clearRetainingCapacity();
    inode.synced_size = inode.size;
}

pub fn emptyInode(pages: *Pages, inode: *Inode) void {
    settle(pages, inode);
    for (0..inode.slots.items.len) |index| dropPage(pages, inode, index);
}

fn takePage(pages: *Pages) *Page {
    return pages.pool.pop() orelse pages.gpa.create(Page) catch @panic("no memory");
}

fn giveBack(pages: *Pages, page: *Page) void {
    pages.pool.append(pages.gpa, page) catch @panic("no memory");
}

fn slotOf(pages: *Pages, inode: *Inode, index: u64) *Slot {
    const at: usize = @intCast(index);
    while (inode.slots.items.len <= at)
        inode.slots.append(pages.gpa, .{}) catch @panic("no memory");
    return &inode.slots.items[at];
}

pub fn pageOf(pages: *Pages, inode: *Inode, index: u64) *Page {
    const slot = slotOf(pages, inode, index);
    return slot.now orelse {
        const page = takePage(pages);
        page.* = @splat(0);
        slot.now = page;
        inode.page_count += 1;
        return page;
    };
}

pub fn dropPage(pages: *Pages, inode: *Inode, index: u64) void {
    if (index >= inode.slots.items.len) return;
    const slot = &inode.slots.items[@intCast(index)];
    const page = slot.now orelse return;
    giveBack(pages, page);
    slot.now = null;
    inode.page_count -= 1;
}

/// Before a page changes: saves the durable content; sometimes an earlier write has become durable
/// by itself.
pub fn noteChange(pages: *Pages, inode: *Inode, index: u64) void {
    const slot = slotOf(pages, inode, index);
    if (!slot.is_noted) {
        slot.is_noted = true;
        inode.noted.append(pages.gpa, @intCast(index)) catch @panic("no memory");
        if (slot.now) |page| {
            slot.synced = takePage(pages);
            slot.synced.?.* = page.*;
        }
        return;
    }
    const random = pages.prng.nextU32();
    if (random % 4 != 0) return;
    const there = slot.synced orelse blk: {
        const page = takePage(pages);
        page.* = @splat(0);
        slot.synced = page;
        break :blk page;
    };
    for (0..sectors_per_page) |sector| {
        if (random >> @intCast(8 + sector) & 1 != 0) continue;
        const kept = there[sector * sector_size ..][0..sector_size];
        if (slot.now) |page|
            kept.* = page[sector * sector_size ..][0..sector_size].*
        else
            @memset(kept, 0);
    }
}
