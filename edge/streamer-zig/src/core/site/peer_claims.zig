//! The boots that this edge and the others of its site claim, and the devices that wait for another
//! edge's answer. Fixed tables, allocated once, and found by indices. Pure.

const std = @import("std");
const base = @import("base");
const Stage = @import("wire").peer.Stage;
const assert = std.debug.assert;
const Mac = base.Mac;
const Uuid = base.Uuid;

/// No device has the zero address.
const free_mac: u48 = 0;
/// A full table looks at so many claims for the oldest one, and at the next ones the next time.
const looked_at_max = 64;

/// This edge's claims, as announced to the others.
pub const OwnClaims = struct {
    by_mac: base.SlotIndex(u48),
    free_slots: base.SlotSet,
    claims: []Own,
    /// When each claim is due, by slot; `never` where the slot is free.
    dues_us: []u64,
    /// Claims to send before all others.
    urgent_slots: base.SlotSet,
    has_urgent: bool = false,
    /// Offers for whose device another edge's offer is known.
    rival_slots: base.SlotSet,
    /// Not later than the first claim that is due and not urgent.
    next_due_us: u64 = 0,
    /// The next slot of the pass over all claims, and the earliest that it has found so far.
    pass_slot: u32 = 0,
    pass_next_us: u64 = never,
    /// Where a full table looks next.
    look_slot: u32 = 0,

    pub const Own = struct {
        boot: Uuid = .zero,
        stage: Stage = .offered,
        /// When the device last made progress.
        since_us: u64 = 0,
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
    const never = std.math.maxInt(u64);
    /// A pass reads the due times of all claims; what is urgent waits for none.
    const pass_interval_us = 10 * std.time.us_per_ms;

    pub fn init(
        gpa: std.mem.Allocator,
        capacity: u32,
        seed: u64,
    ) error{OutOfMemory}!OwnClaims {
        var by_mac: base.SlotIndex(u48) = try .init(gpa, capacity, seed);
        errdefer by_mac.deinit(gpa);
        const claims = try base.allocUntouched(gpa, Own, capacity);
        errdefer base.freeUntouched(gpa, Own, claims);
        const dues_us = try gpa.alloc(u64, capacity);
        errdefer gpa.free(dues_us);
        @memset(dues_us, never);
        var free_slots: base.SlotSet = try .initFull(gpa, capacity);
        errdefer free_slots.deinit(gpa);
        var urgent_slots: base.SlotSet = try .initEmpty(gpa, capacity);
        errdefer urgent_slots.deinit(gpa);
        return .{
            .by_mac = by_mac,
            .free_slots = free_slots,
            .claims = claims,
            .dues_us = dues_us,
            .urgent_slots = urgent_slots,
            .rival_slots = try .initEmpty(gpa, capacity),
        };
    }

    pub fn deinit(own: *OwnClaims, gpa: std.mem.Allocator) void {
        own.by_mac.deinit(gpa);
        base.freeUntouched(gpa, Own, own.claims);
        gpa.free(own.dues_us);
        own.free_slots.deinit(gpa);
        own.urgent_slots.deinit(gpa);
        own.rival_slots.deinit(gpa);
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
        const slot = own.find(mac, boot) orelse {
            const wanted = news.stage orelse return;
            const free_slot = own.takeFreeSlot() orelse return;
            own.by_mac.put(free_slot, mac.toInt());
            own.claims[free_slot] = .{
                .boot = boot,
                .stage = wanted,
                .since_us = news.at_us,
                .begun_by_loader = news.begun_by_loader,
                .is_proved = news.is_proved,
            };
            own.setUrgent(free_slot);
            return;
        };
        const claim = &own.claims[slot];
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
            own.rival_slots.unset(slot);
        } else {
            claim.is_over = true;
            // It was never announced.
            if (claim.sent_us == 0 and claim.stage == .offered) return own.free(slot);
        }
        claim.sends = 0;
        own.setUrgent(slot);
    }

    fn takeFreeSlot(own: *OwnClaims) ?u32 {
        if (own.free_slots.first() == null) own.free(own.oldestKept() orelse return null);
        const slot = own.free_slots.takeFirst().?;
        assert(own.by_mac.keys[slot] == free_mac);
        return slot;
    }

    fn oldestKept(own: *OwnClaims) ?u32 {
        assert(own.look_slot < own.claims.len);
        var oldest: ?u32 = null;
        for (0..@min(looked_at_max, own.claims.len)) |_| {
            const slot = own.look_slot;
            own.look_slot = if (slot + 1 == own.claims.len) 0 else slot + 1;
            const kept_until_us = own.claims[slot].kept_until_us;
            if (kept_until_us == 0) continue;
            if (oldest == null or kept_until_us < own.claims[oldest.?].kept_until_us) oldest = slot;
        }
        return oldest;
    }

    fn free(own: *OwnClaims, slot: u32) void {
        assert(!own.free_slots.isSet(slot));
        own.by_mac.remove(slot);
        own.free_slots.set(slot);
        own.urgent_slots.unset(slot);
        own.rival_slots.unset(slot);
        own.dues_us[slot] = never;
    }

    fn setUrgent(own: *OwnClaims, slot: u32) void {
        assert(!own.free_slots.isSet(slot));
        own.dues_us[slot] = never;
        own.urgent_slots.set(slot);
        own.has_urgent = true;
    }

    /// The device retransmitted: edges that hold back learn that it is served.
    pub fn announce(own: *OwnClaims, now_us: u64, mac: Mac) void {
        var at = own.by_mac.first(mac.toInt());
        while (at) |slot| : (at = own.by_mac.next(slot)) {
            const claim = &own.claims[slot];
            if (claim.is_over or claim.sends == 0) continue;
            if (now_us - claim.sent_us >= again_us_min) own.setUrgent(slot);
        }
    }

    pub fn announceOne(own: *OwnClaims, mac: Mac, boot: Uuid) void {
        own.setUrgent(own.find(mac, boot) orelse return);
    }

    /// An edge has started: it knows none of the claims.
    pub fn announceAll(own: *OwnClaims) void {
        for (own.by_mac.keys, 0..) |mac, slot| if (mac != free_mac) own.setUrgent(@intCast(slot));
    }

    pub fn get(own: *const OwnClaims, mac: Mac, boot: Uuid) ?*const Own {
        return &own.claims[own.find(mac, boot) orelse return null];
    }

    /// Returns how far this edge's boot of the device is; null: it has none.
    pub fn stageOf(own: *const OwnClaims, mac: Mac) ?Stage {
        var reached: ?Stage = null;
        var at = own.by_mac.first(mac.toInt());
        while (at) |slot| : (at = own.by_mac.next(slot)) {
            const claim = &own.claims[slot];
            if (claim.is_over) continue;
            const other = reached orelse claim.stage;
            reached = if (@backingInt(other) > @backingInt(claim.stage)) other else claim.stage;
        }
        return reached;
    }

    /// There is no other edge to announce them to.
    pub fn forgetReleased(own: *OwnClaims) void {
        for (own.claims, 0..) |*claim, index| {
            const slot: u32 = @intCast(index);
            if (!own.free_slots.isSet(slot) and claim.is_over) own.free(slot);
        }
    }

    pub const Due = struct { mac: Mac, claim: Own };

    /// Returns when `takeDue` has a claim again.
    pub fn dueAt(own: *const OwnClaims) u64 {
        return if (own.has_urgent) 0 else own.next_due_us;
    }

    /// Returns the next claim to send, which then counts as sent.
    pub fn takeDue(own: *OwnClaims, now_us: u64) ?Due {
        while (own.has_urgent) {
            const slot = own.urgent_slots.takeFirst() orelse {
                own.has_urgent = false;
                break;
            };
            return own.take(now_us, slot) orelse continue;
        }
        if (now_us < own.next_due_us) return null;
        // The rest of a pass that an earlier call began, and one more.
        for (0..if (own.pass_slot > 0) 2 else 1) |_| {
            while (own.pass_slot < own.dues_us.len) {
                const slot = own.pass_slot;
                own.pass_slot += 1;
                if (own.dues_us[slot] <= now_us) if (own.take(now_us, slot)) |due| return due;
                own.pass_next_us = @min(own.pass_next_us, own.dues_us[slot]);
            }
            own.next_due_us = @max(own.pass_next_us, now_us + pass_interval_us);
            own.pass_slot = 0;
            own.pass_next_us = never;
        }
        return null;
    }

    /// Null: it need not be kept any more.
    fn take(own: *OwnClaims, now_us: u64, slot: u32) ?Due {
        const claim = &own.claims[slot];
        if (claim.kept_until_us != 0 and now_us > claim.kept_until_us) {
            own.free(slot);
            return null;
        }
        claim.sent_us = now_us;
        const due_us =
            now_us + if (claim.sends < pauses_us.len) pauses_us[claim.sends] else refresh_us;
        own.setDue(slot, due_us);
        claim.sends +|= 1;
        const due: Due = .{ .mac = .fromInt(own.by_mac.keys[slot]), .claim = claim.* };
        claim.tells_proof = !claim.tells_proof;
        if (claim.is_over and claim.sends >= release_sends) {
            if (claim.kept_until_us == 0) claim.kept_until_us = now_us + kept_us;
            own.setDue(slot, claim.kept_until_us + 1);
            // An offer that no device took is of no interest afterwards.
            if (claim.stage == .offered) own.free(slot);
        }
        assert(own.dues_us[slot] > now_us);
        return due;
    }

    fn setDue(own: *OwnClaims, slot: u32, due_us: u64) void {
        assert(!own.free_slots.isSet(slot));
        assert(due_us < never);
        own.dues_us[slot] = due_us;
        own.next_due_us = @min(own.next_due_us, due_us);
        own.pass_next_us = @min(own.pass_next_us, due_us);
    }

    /// Another edge has offered the same device a boot: one of the two offers is in vain.
    pub fn onRival(own: *OwnClaims, now_us: u64, mac: Mac, boot: Uuid) void {
        const slot = own.find(mac, boot) orelse return;
        const claim = &own.claims[slot];
        if (claim.stage != .offered or claim.rival_us != null) return;
        claim.rival_us = now_us;
        own.rival_slots.set(slot);
        assert(!own.free_slots.isSet(slot));
    }

    fn find(own: *const OwnClaims, mac: Mac, boot: Uuid) ?u32 {
        var at = own.by_mac.first(mac.toInt());
        while (at) |slot| : (at = own.by_mac.next(slot))
            if (own.claims[slot].boot.eql(boot)) return slot;
        return null;
    }
};

/// Claims of the other edges. When the table is full, newer claims replace older ones.
pub const OtherClaims = struct {
    by_mac: base.SlotIndex(u48),
    free_slots: base.SlotSet,
    claims: []Other,
    /// Where a full table looks next.
    look_slot: u32 = 0,

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
        /// The boot in which the device last proved itself there, and when. A later claim may be of
        /// one that anybody has begun.
        proved_boot: Uuid = .zero,
        proved_us: u64 = 0,

        /// Returns the claim with what an earlier one of its edge and device has told.
        fn after(claim: Other, earlier: *const Other) Other {
            var known = claim;
            const was_proved = earlier.is_proved and earlier.boot.eql(claim.boot);
            known.is_proved = claim.is_proved or was_proved;
            known.proved_boot, known.proved_us = if (known.is_proved)
                .{ claim.boot, claim.since_us }
            else
                .{ earlier.proved_boot, earlier.proved_us };
            return known;
        }
    };

    /// Three times the interval at which its edge announces it again.
    const lifetime_us = 3 * OwnClaims.refresh_us;

    pub fn init(
        gpa: std.mem.Allocator,
        capacity: u32,
        seed: u64,
    ) error{OutOfMemory}!OtherClaims {
        assert(capacity > 0);
        var by_mac: base.SlotIndex(u48) = try .init(gpa, capacity, seed);
        errdefer by_mac.deinit(gpa);
        var free_slots: base.SlotSet = try .initFull(gpa, capacity);
        errdefer free_slots.deinit(gpa);
        const claims = try base.allocZeroed(gpa, Other, .{ .edge = 0, .heard_us = 0 }, capacity);
        return .{ .by_mac = by_mac, .free_slots = free_slots, .claims = claims };
    }

    pub fn deinit(others: *OtherClaims, gpa: std.mem.Allocator) void {
        others.by_mac.deinit(gpa);
        others.free_slots.deinit(gpa);
        base.freeZeroed(gpa, Other, others.claims);
        others.* = undefined;
    }

    /// Returns true if the claim is new. Each edge has one claim per device: its latest.
    pub fn put(others: *OtherClaims, mac: Mac, claim: Other) bool {
        assert(mac.isDevice());
        var at = others.by_mac.first(mac.toInt());
        while (at) |slot| : (at = others.by_mac.next(slot)) {
            const earlier = &others.claims[slot];
            if (earlier.edge != claim.edge) continue;
            if (claim.counter < earlier.counter) return false;
            const is_new = !earlier.boot.eql(claim.boot) or earlier.stage != claim.stage;
            assert(claim.counter >= earlier.counter);
            earlier.* = claim.after(earlier);
            return is_new;
        }
        if (others.free_slots.first() == null) others.free(others.oldest());
        const slot = others.free_slots.takeFirst().?;
        assert(others.by_mac.keys[slot] == free_mac);
        others.by_mac.put(slot, mac.toInt());
        others.claims[slot] = claim.after(&.{});
        return true;
    }

    fn oldest(others: *OtherClaims) u32 {
        assert(others.free_slots.first() == null);
        var found = others.look_slot;
        for (0..@min(looked_at_max, others.claims.len)) |_| {
            const slot = others.look_slot;
            others.look_slot = if (slot + 1 == others.claims.len) 0 else slot + 1;
            if (others.claims[slot].heard_us < others.claims[found].heard_us) found = slot;
        }
        return found;
    }

    fn free(others: *OtherClaims, slot: u32) void {
        assert(!others.free_slots.isSet(slot));
        others.by_mac.remove(slot);
        others.free_slots.set(slot);
    }

    pub fn removeOf(others: *OtherClaims, edge: u8) void {
        for (others.claims, 0..) |*claim, index| {
            const slot: u32 = @intCast(index);
            if (claim.edge == edge and !others.free_slots.isSet(slot)) others.free(slot);
        }
    }

    pub fn clear(others: *OtherClaims) void {
        others.by_mac.clear();
        others.free_slots.setAll();
    }

    /// Returns whether the device has proved itself in another boot than this one since, at another
    /// edge, whether or not that boot is over.
    pub fn isProvedSince(others: *const OtherClaims, mac: Mac, boot: Uuid, since_us: u64) bool {
        assert(mac.isDevice());
        var at = others.by_mac.first(mac.toInt());
        while (at) |slot| : (at = others.by_mac.next(slot)) {
            const claim = &others.claims[slot];
            if (claim.proved_us > since_us and !claim.proved_boot.eql(boot)) return true;
        }
        return false;
    }

    /// Returns the claim with the most progress among those that `isAlive` accepts; of several, the
    /// one that came first.
    pub fn find(
        others: *const OtherClaims,
        now_us: u64,
        mac: Mac,
        context: anytype,
        comptime isAlive: fn (@TypeOf(context), u64, u8) bool,
    ) ?Other {
        var best: ?Other = null;
        var at = others.by_mac.first(mac.toInt());
        while (at) |slot| : (at = others.by_mac.next(slot)) {
            const claim = &others.claims[slot];
            if (claim.is_over) continue;
            if (now_us -| claim.heard_us > lifetime_us) continue;
            if (!isAlive(context, now_us, claim.edge)) continue;
            if (best) |other| if (@backingInt(other.stage) > @backingInt(claim.stage)) continue;
            best = claim.*;
        }
        return best;
    }
};

/// Devices that this edge has not answered, since another one should. A table of small sets: a
/// device has its place in one of them, and there the newest ones stay.
pub const DeferredDevices = struct {
    entries: []Entry,

    const set_size = 8;
    const Entry = struct { mac: u48 = free_mac, repeats: u8 = 0, counted_us: u64 = 0 };

    /// Two copies of one packet are no retry.
    const spacing_us = 250 * std.time.us_per_ms;
    /// A device that retries later than this has given up in between.
    const forget_us = 60 * std.time.us_per_s;

    pub fn init(gpa: std.mem.Allocator, capacity: u32) error{OutOfMemory}!DeferredDevices {
        const size = std.math.ceilPowerOfTwoAssert(u32, @max(capacity, set_size));
        const entries = try base.allocZeroed(gpa, Entry, Entry{}, size);
        return .{ .entries = entries };
    }

    pub fn deinit(deferred: *DeferredDevices, gpa: std.mem.Allocator) void {
        base.freeZeroed(gpa, Entry, deferred.entries);
        deferred.* = undefined;
    }

    /// Returns how often the device has retried since it was first deferred.
    pub fn note(deferred: *DeferredDevices, now_us: u64, mac: Mac) u8 {
        assert(mac.isDevice());
        const set = deferred.setOf(mac);
        var oldest = &set[0];
        for (set) |*entry| {
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
            if (oldest.mac == free_mac) continue;
            if (entry.mac == free_mac or entry.counted_us < oldest.counted_us) oldest = entry;
        }
        oldest.* = .{ .mac = mac.toInt(), .counted_us = now_us };
        return 0;
    }

    pub fn forget(deferred: *DeferredDevices, mac: Mac) void {
        for (deferred.setOf(mac)) |*entry| if (entry.mac == mac.toInt()) {
            entry.* = .{};
        };
    }

    /// Another edge has served the device since it was deferred: what it asks for next is no retry.
    pub fn forgetBefore(deferred: *DeferredDevices, mac: Mac, since_us: u64) void {
        for (deferred.setOf(mac)) |*entry| if (entry.mac == mac.toInt()) {
            if (entry.counted_us < since_us) entry.* = .{};
        };
    }

    fn setOf(deferred: *DeferredDevices, mac: Mac) *[set_size]Entry {
        const sets = deferred.entries.len / set_size;
        const number: usize = @intCast(base.mix(mac.toInt(), 0) & (sets - 1));
        return deferred.entries[number * set_size ..][0..set_size];
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
    var own: OwnClaims = try .init(testing.allocator, 4, 1);
    defer own.deinit(testing.allocator);
    own.onBoot(testMac(1), testBoot(1), .{ .stage = .offered, .at_us = 7 });
    try testing.expect(own.takeDue(1000).?.claim.boot.eql(testBoot(1)));
    try testing.expectEqual(null, own.takeDue(1000));
    try testing.expectEqual(null, own.takeDue(39_000));
    try testing.expect(own.takeDue(41_000) != null);
    try testing.expect(own.takeDue(241_000) != null);
    try testing.expectEqual(null, own.takeDue(5_230_000));
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
    try testing.expect(own.free_slots.isSet(0));
    try testing.expect(own.by_mac.isSound());
}

test "a claim counts until it is withdrawn, its edge is gone, or it expires" {
    const always = struct {
        fn isAlive(gone: u8, _: u64, edge: u8) bool {
            return edge != gone;
        }
    };
    var others: OtherClaims = try .init(testing.allocator, 2, 1);
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

test "a claim that anybody can cause hides no proof" {
    var others: OtherClaims = try .init(testing.allocator, 4, 0);
    defer others.deinit(testing.allocator);
    const mac = testMac(1);
    var claim: OtherClaims.Other =
        .{ .boot = testBoot(1), .edge = 3, .stage = .taken, .is_proved = true, .since_us = 50 };
    try testing.expect(others.put(mac, claim));
    // Every second message leaves the proof out.
    claim.is_proved = false;
    claim.since_us = 60;
    try testing.expect(!others.put(mac, claim));
    try testing.expect(others.put(mac, .{ .boot = testBoot(2), .edge = 3, .since_us = 90 }));
    try testing.expect(others.isProvedSince(mac, testBoot(9), 59));
    try testing.expect(!others.isProvedSince(mac, testBoot(9), 60));
    try testing.expect(!others.isProvedSince(mac, testBoot(1), 0));
}

test "copies of one packet are no retry" {
    var deferred: DeferredDevices = try .init(testing.allocator, 16);
    defer deferred.deinit(testing.allocator);
    try testing.expectEqual(0, deferred.note(0, testMac(1)));
    try testing.expectEqual(0, deferred.note(100, testMac(1)));
    try testing.expectEqual(1, deferred.note(1_000_000, testMac(1)));
    try testing.expectEqual(1, deferred.note(1_000_100, testMac(1)));
    try testing.expectEqual(2, deferred.note(3_000_000, testMac(1)));
    deferred.forget(testMac(1));
    try testing.expectEqual(0, deferred.note(4_000_000, testMac(1)));
    deferred.forgetBefore(testMac(1), 4_000_000);
    try testing.expectEqual(1, deferred.note(5_000_000, testMac(1)));
    deferred.forgetBefore(testMac(1), 5_000_001);
    try testing.expectEqual(0, deferred.note(6_000_000, testMac(1)));
    try testing.expectEqual(0, deferred.note(90_000_000, testMac(1)));
}

test "a flood of addresses evicts only the oldest ones" {
    const capacity = 1024;
    var deferred: DeferredDevices = try .init(testing.allocator, capacity);
    defer deferred.deinit(testing.allocator);
    for (0..3 * capacity) |number|
        try testing.expectEqual(0, deferred.note(number, .fromInt(
            @intCast(0x02bf00000001 + number),
        )));
    try testing.expectEqual(
        1,
        deferred.note(1_000_000, .fromInt(0x02bf00000001 + 3 * capacity - 1)),
    );
}
