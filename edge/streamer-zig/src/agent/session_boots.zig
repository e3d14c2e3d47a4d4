//! Remembers the boot of each session by the session's slot, so that a READ finds its boot without
//! a search, and before its packet is opened.

const std = @import("std");
const base = @import("base");
const core = @import("core");

const BootTable = core.boot.Table;
const StreamServer = core.stream.Server;
const assert = std.debug.assert;

pub const SessionBoots = struct {
    /// Slots in the table of boots, indexed by the slot of the session. They may be out of date.
    places: []u32,

    const none = std.math.maxInt(u32);

    pub fn init(gpa: std.mem.Allocator, sessions_max: usize) error{OutOfMemory}!SessionBoots {
        assert(sessions_max > 0);
        const places = try gpa.alloc(u32, sessions_max);
        @memset(places, none);
        return .{ .places = places };
    }

    pub fn deinit(known: *SessionBoots, gpa: std.mem.Allocator) void {
        gpa.free(known.places);
        known.* = undefined;
    }

    pub fn find(
        known: *SessionBoots,
        table: *const BootTable,
        read: *const StreamServer.ReadRequest,
    ) ?BootTable.Ref {
        assert(StreamServer.slotOf(read.session_id) < known.places.len);
        const place = &known.places[StreamServer.slotOf(read.session_id)];
        if (table.findAt(place.*, read.boot_id)) |ref| return ref;
        const ref = table.findById(read.boot_id) orelse return null;
        assert(ref.index != none);
        place.* = ref.index;
        return ref;
    }

    /// A packet from this address is about to be handled.
    pub fn prefetch(
        known: *const SessionBoots,
        server: *const StreamServer,
        table: *const BootTable,
        from: base.Endpoint,
    ) void {
        const place = server.prefetch(from) orelse return;
        table.prefetch(known.places[place]);
    }
};

test "a session's boot is found in its slot, and after its slot has changed" {
    const testing = std.testing;
    var table: BootTable = try .init(testing.allocator, .{ .capacity = 4 });
    defer table.deinit(testing.allocator);
    var known: SessionBoots = try .init(testing.allocator, 2);
    defer known.deinit(testing.allocator);
    for (known.places) |place| try testing.expectEqual(SessionBoots.none, place);
    var read: StreamServer.ReadRequest = undefined;
    read.session_id = 2;
    var refs: [3]BootTable.Ref = undefined;
    for (&refs, 1..) |*ref, number| {
        const bytes: [16]u8 = @splat(@intCast(number));
        ref.* = try table.insert(.init(.{
            .id = .fromRandom(bytes),
            .mac = .fromInt(@intCast(0x02bf_0000_0000 + number)),
            .handle = number,
            .token = bytes,
        }, .{ .version_id = .zero }, 0, 0), 0);
    }
    // Another device's session takes the slot, and the first device's boot is gone.
    for ([_]usize{ 1, 1, 3, 2 }) |number| {
        read.boot_id = .fromRandom(@splat(@intCast(number)));
        try testing.expectEqual(refs[number - 1], known.find(&table, &read).?);
        const place = known.places[StreamServer.slotOf(read.session_id)];
        try testing.expectEqual(refs[number - 1].index, place);
    }
    table.remove(refs[1]);
    try testing.expectEqual(null, known.find(&table, &read));
    read.boot_id = .zero;
    try testing.expectEqual(null, known.find(&table, &read));
}
