//! The boots that this edge and the others of its site claim, and the devices that wait for another
//! edge's answer. Fixed tables, allocated once; searches scan a compact column of addresses. Pure.

const std = @import("std");
const base = @import("base");
const Stage = @import("wire").peer.Stage;
const assert = std.debug.assert;
const Mac = base.Mac;
const Uuid = base.Uuid;

/// No device has the zero address.
const free_mac: u48 = 0;

/// This edge's claims, as announced to the others.
pub const OwnClaims = struct {
    macs: []u48,
    claims: []Own,
    /// Not later than the first claim that is due.
    next_due_us: u64 = 0,

    pub const Own = struct {
        boot: Uuid = .zero,
        stage: Stage = .offered,
        /// When the device last made progress.
        since_us: u64 = 0,
        due_us: u64 = 0,
        sent_us: u64 = 0,
        sends: u8 = 0,
        begun_by_loader: bool = false,
        is_proved: bool = false,
        /// The next message tells that it is proved. Every second one does not, for older edges.
        tells_proof: bool = true,
        is_over: bool = false,
        /// Until then a starting edge is informed of a boot that is over: it may still consider the
        /// device its own.
        kept_until_us: u64 = 0,
        /// Since when another edge's offer for the same device is known.
        rival_us: ?u64 = null,
    };

    /// The next of these announcements makes up for a lost message; later, a claim is announced
    /// again for edges that have started since.
    const pauses_us = [_]u64{ 40 * std.time.us_per_ms, 200 * std.time.us_per_ms };
    const refresh_us = 5 * std.time.us_per_s;
    const again_us_min = 100 * std.time.us_per_ms;
    const release_sends = 2;
    /// Longer than an edge waits for a device in any phase (boot-phases.json, 300 s).
    const kept_us = 360 * std.time.us_per_s;

    pub fn init(gpa: std.mem.Allocator, capacity: u32) error{OutOfMemory}!OwnClaims {
        const macs = try gpa.alloc(u48, capacity);
        errdefer gpa.free(macs);
        @memset(macs, free_mac);
        return .{ .macs = macs, .claims = try gpa.alloc(Own, capacity) };
    }

    pub fn deinit(own: *OwnClaims, gpa: std.mem.Allocator) void {
        gpa.free(own.macs);
        gpa.free(own.claims);
        own.* = undefined;
    }

    pub const BootUpdate = struct {
        /// Null: it is over, or was none.
        stage: ?Stage,
        /// When the device last made progress.
        at_us: u64,
        begun_by_loader: bool = false,
        is_proved: bool = false,
    };

    /// A boot of this edge made progress or ended. A full table announces nothing of it.
    pub fn onBoot(own: *OwnClaims, mac: Mac, boot: Uuid, news: BootUpdate) void {
        assert(mac.isDevice());
        const index = own.find(mac, boot) orelse {
            const wanted = news.stage orelse return;
            const free = own.freeSlot() orelse return;
            assert(free < own.macs.len);
            own.macs[free] = mac.toInt();
            own.claims[free] = .{
                .boot = boot,
                .stage = wanted,
                .since_us = news.at_us,
                .begun_by_loader = news.begun_by_loader,
                .is_proved = news.is_proved,
            };
            own.next_due_us = 0;
            return;
        };
        const claim = &own.claims[index];
        assert(claim.boot.eql(boot));
        if (claim.is_over) {
            // It was left to another edge, and its device has come back to it.
            if (news.stage == null or !news.is_proved or claim.is_proved) return;
            claim.is_over = false;
            claim.kept_until_us = 0;
        }
        claim.since_us = @max(claim.since_us, news.at_us);
        const is_news = news.is_proved and !claim.is_proved;
        claim.is_proved = claim.is_proved or news.is_proved;
        if (news.stage) |reached| {
            if (@backingInt(reached) <= @backingInt(claim.stage) and !is_news) return;
            claim.stage = reached;
            claim.rival_us = null;
        } else {
            claim.is_over = true;
            if (claim.sent_us == 0 and claim.stage == .offered) {
                // It was never announced.
                own.macs[index] = free_mac;
                return;
            }
        }
        claim.due_us = 0;
        claim.sends = 0;
        own.next_due_us = 0;
    }

    fn freeSlot(own: *OwnClaims) ?usize {
        if (std.mem.findScalar(u48, own.macs, free_mac)) |free| return free;
        var oldest: ?usize = null;
        for (own.claims, 0..) |*claim, index| {
            if (claim.kept_until_us == 0) continue;
            if (oldest == null or claim.kept_until_us < own.claims[oldest.?].kept_until_us)
                oldest = index;
        }
        return oldest;
    }

    /// The device retransmitted: edges that hold back learn that it is served.
    pub fn announce(own: *OwnClaims, now_us: u64, mac: Mac) void {
        for (own.macs, own.claims) |known, *claim| {
            if (known != mac.toInt() or claim.is_over or claim.sends == 0) continue;
            if (now_us - claim.sent_us < again_us_min) continue;
            claim.due_us = now_us;
            own.next_due_us = 0;
        }
    }

    pub fn announceOne(own: *OwnClaims, mac: Mac, boot: Uuid) void {
        const index = own.find(mac, boot) orelse return;
        assert(own.macs[index] != free_mac);
        own.claims[index].due_us = 0;
        own.next_due_us = 0;
    }

    /// An edge has started: it knows none of the claims.
    pub fn announceAll(own: *OwnClaims) void {
        for (own.claims, own.macs) |*claim, mac| if (mac != free_mac) {
            claim.due_us = 0;
        };
        own.next_due_us = 0;
    }

    pub fn get(own: *const OwnClaims, mac: Mac, boot: Uuid) ?*const Own {
        return &own.claims[own.find(mac, boot) orelse return null];
    }

    /// Returns how far this edge's boot of the device is; null: it has none.
    pub fn stageOf(own: *const OwnClaims, mac: Mac) ?Stage {
        var reached: ?Stage = null;
        for (own.macs, own.claims) |known, *claim| {
            if (known != mac.toInt() or claim.is_over) continue;
            const other = reached orelse claim.stage;
            reached = if (@backingInt(other) > @backingInt(claim.stage)) other else claim.stage;
        }
        return reached;
    }

    /// There is no other edge to announce them to.
    pub fn forgetReleased(own: *OwnClaims) void {
        for (own.macs, own.claims) |*mac, *claim| {
            if (mac.* != free_mac and claim.is_over) mac.* = free_mac;
        }
    }

    pub const Due = struct { mac: Mac, claim: Own };

    /// Returns the next claim to send, which then counts as sent.
    pub fn takeDue(own: *OwnClaims, now_us: u64) ?Due {
        if (now_us < own.next_due_us) return null;
        var next_us: u64 = std.math.maxInt(u64);
        for (own.macs, own.claims) |*mac, *claim| {
            if (mac.* == free_mac) continue;
            if (claim.kept_until_us != 0 and now_us > claim.kept_until_us) {
                mac.* = free_mac;
                continue;
            }
            if (claim.due_us > now_us) {
                next_us = @min(next_us, claim.due_us);
                continue;
            }
            claim.sent_us = now_us;
            claim.due_us =
                now_us + if (claim.sends < pauses_us.len) pauses_us[claim.sends] else refresh_us;
            claim.sends +|= 1;
            const due: Due = .{ .mac = .fromInt(mac.*), .claim = claim.* };
            claim.tells_proof = !claim.tells_proof;
            if (claim.is_over and claim.sends >= release_sends) {
                if (claim.kept_until_us == 0) claim.kept_until_us = now_us + kept_us;
                claim.due_us = claim.kept_until_us + 1;
                // An offer that no device took is of no interest afterwards.
                if (claim.stage == .offered) mac.* = free_mac;
            }
            assert(claim.due_us > now_us);
            return due;
        }
        own.next_due_us = next_us;
        return null;
    }

    /// Another edge has offered the same device a boot: one of the two offers is in vain.
    pub fn onRival(own: *OwnClaims, now_us: u64, boot: Uuid) void {
        for (own.macs, own.claims) |mac, *claim| {
            if (mac == free_mac or !claim.boot.eql(boot) or claim.stage != .offered) continue;
            if (claim.rival_us == null) claim.rival_us = now_us;
        }
    }

    fn find(own: *const OwnClaims, mac: Mac, boot: Uuid) ?usize {
        for (own.macs, own.claims, 0..) |known, *claim, index| {
            if (known == mac.toInt() and claim.boot.eql(boot)) return index;
        }
        return null;
    }
};

/// Claims of the other edges. When the table is full, newer claims replace the oldest.
pub const OtherClaims = struct {
    macs: []u48,
    claims: []Other,

    pub const Other = struct {
        boot: Uuid = .zero,
        /// Index in the site's edges.
        edge: u8 = 0,
        stage: Stage = .offered,
        is_over: bool = false,
        is_proved: bool = false,
        /// When the device last made progress there.
        since_us: u64 = 0,
        heard_us: u64 = 0,
        /// Counter of the message with this claim: an earlier message may arrive later.
        counter: u64 = 0,
    };

    /// Three times the interval at which its edge announces it again.
    const lifetime_us = 3 * OwnClaims.refresh_us;

    pub fn init(gpa: std.mem.Allocator, capacity: u32) error{OutOfMemory}!OtherClaims {
        assert(capacity > 0);
        const macs = try gpa.alloc(u48, capacity);
        errdefer gpa.free(macs);
        @memset(macs, free_mac);
        const claims = try gpa.alloc(Other, capacity);
        @memset(claims, .{});
        return .{ .macs = macs, .claims = claims };
    }

    pub fn deinit(others: *OtherClaims, gpa: std.mem.Allocator) void {
        gpa.free(others.macs);
        gpa.free(others.claims);
        others.* = undefined;
    }

    /// Returns true if the claim is new. Each edge has one claim per device: its latest.
    pub fn put(others: *OtherClaims, mac: Mac, claim: Other) bool {
        assert(mac.isDevice());
        var slot: usize = 0;
        for (others.macs, others.claims, 0..) |known, *earlier, index| {
            if (known == mac.toInt() and earlier.edge == claim.edge) {
                if (claim.counter < earlier.counter) return false;
                const is_new = !earlier.boot.eql(claim.boot) or earlier.stage != claim.stage;
                assert(claim.counter >= earlier.counter);
                const was_proved = earlier.is_proved and earlier.boot.eql(claim.boot);
                earlier.* = claim;
                earlier.is_proved = claim.is_proved or was_proved;
                return is_new;
            }
            if (others.macs[slot] == free_mac) continue;
            if (known == free_mac or earlier.heard_us < others.claims[slot].heard_us) slot = index;
        }
        assert(slot < others.macs.len);
        others.macs[slot] = mac.toInt();
        others.claims[slot] = claim;
        return true;
    }

    pub fn removeOf(others: *OtherClaims, edge: u8) void {
        for (others.macs, others.claims) |*known, *claim| {
            if (claim.edge == edge) known.* = free_mac;
        }
    }

    pub fn clear(others: *OtherClaims) void {
        @memset(others.macs, free_mac);
    }

    /// Returns whether the device has proved itself in another boot than this one since, at another
    /// edge, whether or not that boot is over.
    pub fn isProvedSince(others: *const OtherClaims, mac: Mac, boot: Uuid, since_us: u64) bool {
        assert(mac.isDevice());
        for (others.macs, others.claims) |known, *claim| {
            if (known != mac.toInt() or !claim.is_proved or claim.boot.eql(boot)) continue;
            if (claim.since_us > since_us) return true;
        }
        return false;
    }

    /// Returns the claim with the most progress among those that `isAlive` accepts.
    pub fn find(
        others: *const OtherClaims,
        now_us: u64,
        mac: Mac,
        context: anytype,
        comptime isAlive: fn (@TypeOf(context), u64, u8) bool,
    ) ?Other {
        var best: ?Other = null;
        for (others.macs, others.claims) |known, *claim| {
            if (known != mac.toInt() or claim.is_over) continue;
            if (now_us -| claim.heard_us > lifetime_us) continue;
            if (!isAlive(context, now_us, claim.edge)) continue;
            if (best) |other| if (@backingInt(other.stage) >= @backingInt(claim.stage)) continue;
            best = claim.*;
        }
        return best;
    }
};

/// Devices that this edge has not answered, since another one should.
pub const DeferredDevices = struct {
    entries: [capacity]Entry = @splat(.{}),

    const capacity = 1024;
    const Entry = struct { mac: u48 = free_mac, repeats: u8 = 0, counted_us: u64 = 0 };

    /// Two copies of one packet are no retry.
    const spacing_us = 250 * std.time.us_per_ms;
    /// A device that retries later than this has given up in between.
    const forget_us = 60 * std.time.us_per_s;

    /// Returns how often the device has retried since it was first deferred.
    pub fn note(deferred: *DeferredDevices, now_us: u64, mac: Mac) u8 {
        var slot: usize = 0;
        for (&deferred.entries, 0..) |*entry, index| {
            if (entry.mac == mac.toInt()) {
                if (now_us -| entry.counted_us > forget_us) {
                    entry.repeats = 0;
                    entry.counted_us = now_us;
                } else if (now_us -| entry.counted_us >= spacing_us) {
                    entry.repeats +|= 1;
                    entry.counted_us = now_us;
                }
                return entry.repeats;
            }
            if (deferred.entries[slot].mac == free_mac) continue;
            if (entry.mac == free_mac or entry.counted_us < deferred.entries[slot].counted_us)
                slot = index;
        }
        deferred.entries[slot] = .{ .mac = mac.toInt(), .counted_us = now_us };
        return 0;
    }

    pub fn forget(deferred: *DeferredDevices, mac: Mac) void {
        for (&deferred.entries) |*entry| if (entry.mac == mac.toInt()) {
            entry.* = .{};
        };
    }
};

const testing = std.testing;

fn testMac(number: u8) Mac {
    return .{ .bytes = .{ 2, 0xbf, 0, 0, 0, number } };
}

fn testBoot(number: u8) Uuid {
    return .fromRandom(@splat(number));
}

test "a claim is sent three times and then every five seconds, its end twice" {
    var own: OwnClaims = try .init(testing.allocator, 4);
    defer own.deinit(testing.allocator);
    own.onBoot(testMac(1), testBoot(1), .{ .stage = .offered, .at_us = 7 });
    try testing.expect(own.takeDue(1000).?.claim.boot.eql(testBoot(1)));
    try testing.expectEqual(null, own.takeDue(1000));
    try testing.expectEqual(null, own.takeDue(39_000));
    try testing.expect(own.takeDue(41_000) != null);
    try testing.expect(own.takeDue(241_000) != null);
    try testing.expectEqual(null, own.takeDue(5_240_000));
    try testing.expect(own.takeDue(5_241_000) != null);
    own.onBoot(testMac(1), testBoot(1), .{ .stage = .taken, .at_us = 9 });
    try testing.expectEqual(.taken, own.takeDue(5_242_000).?.claim.stage);
    own.onBoot(testMac(1), testBoot(1), .{ .stage = .offered, .at_us = 10 });
    own.onBoot(testMac(1), testBoot(1), .{ .stage = null, .at_us = 11 });
    try testing.expect(own.takeDue(5_243_000).?.claim.is_over);
    try testing.expect(own.takeDue(5_300_000).?.claim.is_over);
    try testing.expectEqual(null, own.takeDue(60_000_000));
    own.announceAll();
    const again = own.takeDue(60_000_000).?.claim;
    try testing.expect(again.is_over and again.since_us == 11);
    try testing.expectEqual(null, own.takeDue(100_000_000));
    try testing.expectEqual(null, own.takeDue(500_000_000));
    try testing.expectEqual(free_mac, own.macs[0]);
}

test "a claim counts until it is withdrawn, its edge is gone, or it expires" {
    const always = struct {
        fn isAlive(gone: u8, _: u64, edge: u8) bool {
            return edge != gone;
        }
    };
    var others: OtherClaims = try .init(testing.allocator, 2);
    defer others.deinit(testing.allocator);
    try testing.expect(others.put(testMac(1), .{ .boot = testBoot(1), .edge = 3 }));
    try testing.expect(!others.put(testMac(1), .{ .boot = testBoot(1), .edge = 3 }));
    try testing.expect(
        others.put(testMac(1), .{ .boot = testBoot(1), .edge = 3, .stage = .taken }),
    );
    try testing.expectEqual(.taken, others.find(0, testMac(1), @as(u8, 9), always.isAlive).?.stage);
    try testing.expectEqual(null, others.find(0, testMac(1), @as(u8, 3), always.isAlive));
    try testing.expectEqual(
        null,
        others.find(OtherClaims.lifetime_us + 1, testMac(1), @as(u8, 9), always.isAlive),
    );
    _ = others.put(testMac(2), .{ .boot = testBoot(2), .edge = 3, .heard_us = 5 });
    _ = others.put(testMac(3), .{ .boot = testBoot(3), .edge = 3, .heard_us = 6 });
    try testing.expectEqual(null, others.find(6, testMac(1), @as(u8, 9), always.isAlive));
    _ = others.put(
        testMac(2),
        .{ .boot = testBoot(2), .edge = 3, .heard_us = 7, .counter = 9, .is_over = true },
    );
    try testing.expect(
        !others.put(testMac(2), .{ .boot = testBoot(2), .edge = 3, .heard_us = 8, .counter = 8 }),
    );
    try testing.expectEqual(null, others.find(6, testMac(2), @as(u8, 9), always.isAlive));
}

test "copies of one packet are no retry" {
    var deferred: DeferredDevices = .{};
    try testing.expectEqual(0, deferred.note(0, testMac(1)));
    try testing.expectEqual(0, deferred.note(100, testMac(1)));
    try testing.expectEqual(1, deferred.note(1_000_000, testMac(1)));
    try testing.expectEqual(1, deferred.note(1_000_100, testMac(1)));
    try testing.expectEqual(2, deferred.note(3_000_000, testMac(1)));
    deferred.forget(testMac(1));
    try testing.expectEqual(0, deferred.note(4_000_000, testMac(1)));
    try testing.expectEqual(0, deferred.note(90_000_000, testMac(1)));
}

test "a flood of addresses evicts only the oldest ones" {
    var deferred: DeferredDevices = .{};
    for (0..3 * DeferredDevices.capacity) |number|
        try testing.expectEqual(0, deferred.note(number, .fromInt(
            @intCast(0x02bf00000001 + number),
        )));
    try testing.expectEqual(
        1,
        deferred.note(1_000_000, .fromInt(0x02bf00000001 + 3 * DeferredDevices.capacity - 1)),
    );
}
