//! Tests of event.zig: what each event changes in its boot, and what it leaves alone.

const std = @import("std");
const base = @import("base");
const boot_phase = @import("phase.zig");
const boot_test = @import("boot_test.zig");
const Boot = @import("boot.zig");
const stream = @import("wire").stream;

const testing = std.testing;
const at = boot_test.at;
const dhcpRom = boot_test.dhcpRom;
const discover = boot_test.discover;
const download = boot_test.download;
const downloadNbp = boot_test.downloadNbp;
const expectPhase = boot_test.expectPhase;
const heardOffer = boot_test.heardOffer;
const loadSystem = boot_test.loadSystem;
const start = boot_test.start;

const ms = std.time.us_per_ms;

fn openStream(boot: *Boot, at_ms: u64, resumed: bool) void {
    const open: @FieldType(Boot.Event, "stream_open") =
        .{ .resumed = resumed, .mtu = 1500, .cipher = .aegis_128l };
    at(boot, at_ms, .{ .stream_open = open });
}

fn newRead(boot: *Boot, at_ms: u64) void {
    at(boot, at_ms, .{ .stream_read = .{ .size = 4500, .attempt = 0, .missing_fragments = 0 } });
}

fn retransmit(boot: *Boot, at_ms: u64, missing_fragments: u32) void {
    at(boot, at_ms, .{
        .stream_read = .{ .size = 4500, .attempt = 1, .missing_fragments = missing_fragments },
    });
}

test "a known transaction belongs to a boot that is over for ten seconds, and no microsecond more" {
    var boot = start();
    dhcpRom(&boot);
    at(&boot, 5, .{ .failed = .{ .cause = .nbp_not_found } });
    const limit_us = boot.started_us + 5 * ms + 10 * std.time.us_per_s;
    try testing.expectEqual(.same_boot, boot.dhcpMeaning(limit_us, discover(.rom, 1)));
    try testing.expectEqual(.new_boot, boot.dhcpMeaning(limit_us + 1, discover(.rom, 1)));
}

test "each event is journaled, and what begins or ends a phase is reported" {
    var boot = start();
    const Step = struct { u64, Boot.Event, ?bool };
    const open: @FieldType(Boot.Event, "stream_open") =
        .{ .resumed = false, .mtu = 1500, .cipher = .aegis_128l };
    for ([_]Step{
        .{ 0, .{ .dhcp_request = discover(.rom, 1) }, true },
        .{ 1, .{ .dhcp_answer = .{ .size = 400 } }, false },
        .{ 10, .nbp_begin, true },
        .{ 20, .nbp_end, true },
        // Another program after all: the loader is taken back.
        .{ 25, .nbp_begin, true },
        .{ 28, .nbp_end, true },
        .{ 30, .{ .loader_begin = .kernel }, false },
        .{ 40, .{ .loader_end = .kernel }, false },
        .{ 41, .{ .loader_begin = .initrd }, false },
        .{ 50, .{ .loader_end = .initrd }, true },
        // A script does not take the breather back, another file does.
        .{ 51, .{ .loader_begin = .script }, false },
        .{ 52, .{ .loader_begin = .initrd }, true },
        .{ 60, .{ .loader_end = .initrd }, true },
        .{ 90, .{ .stream_open = open }, true },
        .{ 91, .{ .stream_traffic = .{ .packets_in = 1 } }, false },
        // Whoever asks for its files or answers its menu now is somebody else.
        .{ 92, .nbp_begin, null },
        .{ 93, .{ .loader_begin = .kernel }, null },
        .{ 94, .left_to_local_disk, null },
        .{ 99, .{ .failed = .{ .cause = .root_not_found } }, true },
    }) |step| {
        boot.changed = false;
        boot.touched = false;
        boot.live_changes = .{};
        at(&boot, step[0], step[1]);
        try testing.expectEqual(step[2] orelse false, boot.changed);
        try testing.expectEqual(step[2] != null, boot.touched);
        try testing.expectEqual(boot.isOver(), boot.live_changes.outcome);
    }
}

test "a phase whose end nobody observed ends when the next one shows itself" {
    const open: @FieldType(Boot.Event, "stream_open") =
        .{ .resumed = false, .mtu = 1500, .cipher = .aegis_128l };
    // The network's own DHCP server answers, and this edge sees only the downloads.
    for ([_]Boot.Event{
        .nbp_begin,
        .{ .loader_begin = .script },
        .{ .stream_open = open },
        .{ .ready = .http },
    }) |event| {
        var unheard = start();
        at(&unheard, 0, .power_command);
        at(&unheard, 3000, event);
        try expectPhase(&unheard, .firmware, 0, 3000);
    }
    for ([_]Boot.Event{
        .nbp_begin,
        .{ .loader_begin = .script },
        .{ .stage1_read = .{ .size = 512 } },
        .{ .stream_open = open },
    }) |event| {
        var heard = start();
        dhcpRom(&heard);
        // Its last answer ends it, not a request that gets none.
        at(&heard, 9, .{ .dhcp_request = discover(.rom, 1) });
        at(&heard, 3000, event);
        try expectPhase(&heard, .dhcp, 0, 1);
    }
    for ([_]Boot.Event{ .{ .stage1_read = .{ .size = 512 } }, .{ .stream_open = open } }) |event| {
        var loading = start();
        at(&loading, 10, .nbp_begin);
        at(&loading, 18, .{ .nbp_traffic = .{ .packets_in = 1 } });
        var loader_runs = loading;
        at(&loading, 3000, event);
        try expectPhase(&loading, .nbp, 10, 8);
        at(&loader_runs, 40, .{ .loader_begin = .script });
        at(&loader_runs, 3000, event);
        try expectPhase(&loader_runs, .loader, 18, 22);
    }
    // A file that is loaded again is progress from the moment of its request.
    var again = start();
    dhcpRom(&again);
    downloadNbp(&again);
    loadSystem(&again);
    at(&again, 100, .{ .loader_begin = .initrd });
    at(&again, 3000, .{ .stream_open = open });
    try expectPhase(&again, .loader, 20, 80);
}

test "DHCP packets are counted with the phase that they fall into" {
    var boot = start();
    dhcpRom(&boot);
    at(&boot, 2, .{ .dhcp_request = discover(.rom, 2) });
    at(&boot, 3, .{
        .dhcp_request = .{ .message = .request, .client = .rom, .xid = 2, .size = 310 },
    });
    at(&boot, 4, .{
        .dhcp_request = .{ .message = .request, .client = .rom, .xid = 2, .size = 310 },
    });
    const dhcp = boot.record(.dhcp).?.traffic;
    try testing.expectEqual(boot_phase.Traffic{
        .bytes_in = 1220,
        .bytes_out = 400,
        .packets_in = 4,
        .packets_out = 1,
        // Only a DISCOVER that is sent again.
        .retries = 1,
    }, dhcp);
    downloadNbp(&boot);
    at(&boot, 30, .{ .dhcp_answer = .{ .size = 50 } });
    try expectPhase(&boot, .dhcp, 0, 1);
    try testing.expectEqual(50, boot.record(.loader).?.traffic.bytes_out);
}

test "a report of the device and a resumed stream are signs of life, without which there is a gap" {
    for ([_]bool{ false, true }) |is_report| {
        var boot = start();
        openStream(&boot, 100, false);
        newRead(&boot, 1000);
        if (is_report)
            at(&boot, 1200, .{ .guest = .{ .uptime_us = 1 } })
        else
            openStream(&boot, 1200, true);
        newRead(&boot, 1400);
        at(&boot, 1400, .{ .stream_traffic = .{ .packets_out = 1 } });
        try testing.expectEqual(0, boot.record(.stage2).?.gap_count);
        at(&boot, 1651, .{ .stream_traffic = .{ .packets_out = 1 } });
        try testing.expectEqual(1, boot.record(.stage2).?.gap_count);
    }
}

test "the newest read's fragments and the first session's cipher are facts of the boot" {
    var boot = start();
    openStream(&boot, 100, false);
    try testing.expectEqual(.aegis_128l, boot.facts.cipher.?);
    at(&boot, 101, .{
        .stream_read = .{ .size = 512, .attempt = 0, .missing_fragments = 0, .mtu = 9000 },
    });
    try testing.expectEqual(9000, boot.facts.mtu.?);
    newRead(&boot, 102);
    try testing.expectEqual(9000, boot.facts.mtu.?);
}

test "only twelve whole retransmits in a row, without a new read, are a path MTU black hole" {
    const limit = Boot.whole_retransmits_max;
    try testing.expectEqual(12, limit);
    var boot = start();
    openStream(&boot, 100, false);
    newRead(&boot, 101);
    // Three fragments of 1500 bytes are just the whole read.
    for (1..limit) |_| retransmit(&boot, 102, 3);
    try testing.expectEqual(null, boot.suspicion);
    newRead(&boot, 103);
    for (1..limit) |_| retransmit(&boot, 104, 3);
    try testing.expectEqual(null, boot.suspicion);
    retransmit(&boot, 105, 2);
    for (1..limit) |_| retransmit(&boot, 106, 3);
    try testing.expectEqual(null, boot.suspicion);
    // An earlier suspicion stays.
    var suspected = boot;
    at(&suspected, 107, .{ .suspected = .{ .cause = .store_read_error } });
    retransmit(&suspected, 107, 3);
    try testing.expectEqual(.store_read_error, suspected.suspicion.?.cause);
    retransmit(&boot, 107, 3);
    try testing.expectEqual(.path_mtu_black_hole, boot.suspicion.?.cause);
    const text = boot.suspicion.?.text.slice();
    try testing.expectEqualStrings("stream packets of 1500 bytes do not arrive", text);
}

test "a device that is ready before its first read was in stage 2 all the same" {
    var boot = start();
    openStream(&boot, 100, false);
    at(&boot, 130, .{ .ready = .stream });
    try expectPhase(&boot, .stage2, 130, 0);
}

test "silence belongs to an inferred phase, and to no observed one but those that were left open" {
    // The same boot, ended by silence and by the device's next boot.
    for ([_]bool{ false, true }) |is_superseded| {
        var breathes = start();
        dhcpRom(&breathes);
        downloadNbp(&breathes);
        loadSystem(&breathes);
        var asks = start();
        dhcpRom(&asks);
        at(&asks, 5, .power_command);
        for ([_]*Boot{ &breathes, &asks }) |boot| {
            boot.touched = false;
            if (is_superseded)
                boot.supersede(boot.started_us + 300_000 * ms)
            else
                boot.tick(boot.started_us + 300_000 * ms, null);
            try testing.expect(boot.touched);
        }
        try expectPhase(&breathes, .breather, 65, 299_935);
        try expectPhase(&asks, .dhcp, 0, 1);
        try expectPhase(&asks, .firmware, 5, 299_995);
    }
    // Time never runs backwards within a boot.
    var late = start();
    dhcpRom(&late);
    downloadNbp(&late);
    loadSystem(&late);
    late.supersede(late.started_us + 64 * ms);
    try expectPhase(&late, .breather, 65, 0);
}

test "a menu extends the silence limit until the kernel is requested" {
    for ([_]bool{ false, true }) |has_begun| {
        var boot = start();
        download(&boot, 0, .script);
        at(&boot, 10, .{ .menu_shown = .{ .timeout_ms = 30_000 } });
        if (has_begun) at(&boot, 10, .{ .loader_begin = .kernel });
        boot.tick(boot.started_us + 120_010 * ms, null);
        try testing.expectEqual(has_begun, boot.isOver());
        boot.tick(boot.started_us + 150_010 * ms, null);
        try testing.expect(boot.isOver());
    }
}

test "a choice from the menu is reported, and ends only a suspicion about the version before" {
    for ([_]boot_phase.Cause{ .version_missing, .token_refused }) |cause| {
        var boot = start();
        at(&boot, 1, .{ .suspected = .{ .cause = cause } });
        boot.changed = false;
        at(&boot, 2, .{ .menu_choice = .{ .title = .init("two"), .assignment = null } });
        try testing.expect(boot.changed);
        try testing.expectEqualStrings("two", boot.menu_entry.slice());
        try testing.expectEqual(cause != .version_missing, boot.suspicion != null);
    }
}

test "a suspicion lasts until a later phase begins" {
    var boot = start();
    // Before the first packet is counted, in the phase that it begins.
    at(&boot, 0, .{ .suspected = .{ .cause = .version_missing } });
    dhcpRom(&boot);
    try testing.expectEqual(.version_missing, boot.suspicion.?.cause);
    at(&boot, 10, .nbp_begin);
    try testing.expectEqual(null, boot.suspicion);
}

test "a boot that goes silent after a store error failed by it" {
    var boot = start();
    openStream(&boot, 100, false);
    newRead(&boot, 101);
    at(&boot, 102, .store_error);
    boot.tick(boot.started_us + 400_000 * ms, null);
    try testing.expectEqual(.store_read_error, boot.outcome.?.failed.cause);
}

test "new steps of a device are journaled, and told to those who watch" {
    var boot = start();
    var list: stream.StepList = .empty;
    try list.append(.{ .group = .kernel, .name = "kernel", .start_us = 0, .duration_us = 5 });
    // Its first report, without steps.
    at(&boot, 1, .{ .guest = .{ .uptime_us = 1 } });
    try testing.expectEqual(Boot.LiveChanges{}, boot.live_changes);
    at(&boot, 2, .{ .left_to_local_disk = {} });
    boot.touched = false;
    boot.live_changes = .{};
    at(&boot, 3, .{ .guest = .{ .uptime_us = 2, .steps = list.view() } });
    try testing.expect(boot.live_changes.steps);
    try testing.expect(boot.touched);
}

test "read times before a device's system belong to it only after a fail-over" {
    for ([_]bool{ false, true }) |is_elsewhere| {
        var boot = start();
        if (is_elsewhere) boot.failover = .{ .number = 1, .from_edge = .zero, .at_us = 0 };
        boot.read_times.onRead(512, .{ .is_cold = false, .storage_us = 3, .send_us = 40 });
        var fetch: base.DurationHistogram = .{};
        fetch.note(900);
        var list: stream.ReadTimeList = .empty;
        list.append(.system, .fetch, &fetch);
        at(&boot, 5, .{ .guest = .{ .uptime_us = 1, .read_times = list.view() } });
        const bytes: u64 = if (is_elsewhere) 512 else 0;
        try testing.expectEqual(bytes, boot.read_times.system.?.bytes);
    }
}

test "packets and offers carry their time since the boot's start" {
    var boot = start();
    boot.onPacket(boot.started_us + 7, .from_edge, .{ .name = .dhcp_offer });
    try testing.expectEqual(7, boot.last_packets.from_edge.?.at_us);
    boot.onOffer(boot.started_us + 9, heardOffer(9, "theirs"));
    try testing.expectEqual(9, boot.offers.slots[0].?.at_us);
}

test "an offer is heard of no boot that is over, loads its program, or runs its loader" {
    for ([_]Boot.Event{ .left_to_local_disk, .nbp_begin, .{ .loader_begin = .script } }) |event| {
        var boot = start();
        at(&boot, 1, event);
        boot.onOffer(boot.started_us + 2 * ms, heardOffer(9, "theirs"));
        try testing.expectEqual(0, boot.offers.count());
    }
}

test "a DISCOVER of the same microsecond as another server's offer does not refuse it" {
    var boot = start();
    dhcpRom(&boot);
    boot.onOffer(boot.started_us + 1 * ms, heardOffer(1, "ours"));
    boot.onOffer(boot.started_us + 3 * ms, heardOffer(9, "theirs"));
    boot.onPacket(boot.started_us + 3 * ms, .from_device, .{ .name = .dhcp_discover });
    boot.tick(boot.started_us + 61_000 * ms, null);
    try testing.expectEqual(.other_offer_won, boot.outcome.?.failed.cause);
}

test "a boot from the journal keeps its age by the wall clock, and never loses what it lived" {
    for ([_]u64{ 0, 4, 5, 6 }, [_]u64{ 5000, 5000, 5000, 6000 }) |away_ms, age_us| {
        var boot = start();
        at(&boot, 5, .nbp_begin);
        boot.rebase(900_000, boot.started_unix_ms + away_ms);
        try testing.expectEqual(900_000 - age_us, boot.started_us);
    }
    // The wall clock was set back, or the machine has started a moment ago.
    var early = start();
    at(&early, 5, .nbp_begin);
    early.rebase(900_000, 0);
    try testing.expectEqual(895_000, early.started_us);
    early.rebase(3, early.started_unix_ms + 1000);
    try testing.expectEqual(0, early.started_us);
}
