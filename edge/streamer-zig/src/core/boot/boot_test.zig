//! Tests of boot.zig: sequences of packets and the phases they mean.

const std = @import("std");
const base = @import("base");
const boot_packets = @import("packets.zig");
const boot_phase = @import("phase.zig");
const Boot = @import("boot.zig");
const stream = @import("wire").stream;

const testing = std.testing;
const DhcpRequest = Boot.DhcpRequest;

const ms = std.time.us_per_ms;

/// A boot of a version with kernel and initramfs.
pub fn start() Boot {
    return .init(.{
        .id = .fromRandom(@splat(1)),
        .mac = .{ .bytes = .{ 2, 0xbf, 0, 0, 0, 1 } },
        .handle = 7,
        .token = @splat(9),
    }, .{
        .version_id = .zero,
        .loader_files = .{ .kernel = true, .initrd = true },
    }, 1_000_000, 1_795_000_000_000);
}

pub fn discover(client: Boot.DhcpClient, xid: u32) DhcpRequest {
    return .{ .message = .discover, .client = client, .xid = xid, .size = 300 };
}

/// Applies an event `at_ms` after the boot's start.
pub fn at(boot: *Boot, at_ms: u64, event: Boot.Event) void {
    boot.apply(boot.started_us + at_ms * ms, event);
}

pub fn dhcpRom(boot: *Boot) void {
    at(boot, 0, .{ .dhcp_request = discover(.rom, 1) });
    at(boot, 1, .{ .dhcp_answer = .{ .size = 400 } });
}

pub fn downloadNbp(boot: *Boot) void {
    at(boot, 10, .nbp_begin);
    at(boot, 12, .{ .nbp_traffic = .{ .bytes_out = 90_000, .packets_out = 60, .packets_in = 61 } });
    at(boot, 20, .nbp_end);
}

pub fn download(boot: *Boot, at_ms: u64, file: Boot.LoaderFile) void {
    at(boot, at_ms, .{ .loader_begin = file });
    at(boot, at_ms + 1, .{ .loader_traffic = .{ .bytes_out = 5_000_000 } });
    at(boot, at_ms + 5, .{ .loader_end = file });
}

pub fn loadSystem(boot: *Boot) void {
    at(boot, 30, .{ .dhcp_request = discover(.ipxe, 2) });
    at(boot, 31, .{ .dhcp_answer = .{ .size = 400 } });
    download(boot, 40, .script);
    download(boot, 50, .kernel);
    download(boot, 60, .initrd);
}

fn streamSystem(boot: *Boot) void {
    at(boot, 900, .{ .stream_open = .{ .resumed = false, .mtu = 1500, .cipher = .aegis_128l } });
    at(boot, 901, .{ .stream_read = .{ .size = 4096, .attempt = 0, .missing_fragments = 0 } });
    at(boot, 905, .{ .stream_read = .{ .size = 131072, .attempt = 0, .missing_fragments = 0 } });
    at(boot, 910, .{ .stream_read = .{ .size = 131072, .attempt = 1, .missing_fragments = 3 } });
    at(boot, 1500, .{ .stream_traffic = .{ .bytes_out = 140_000, .packets_out = 100 } });
}

pub fn expectPhase(
    boot: *const Boot,
    phase: boot_phase.Phase,
    start_ms: u64,
    duration_ms: u64,
) !void {
    const record = boot.record(phase) orelse return error.PhaseIsMissing;
    try testing.expectEqual(start_ms * ms, record.start_us);
    try testing.expectEqual(duration_ms * ms, record.durationUs().?);
}

test "a whole boot has each phase with its own start and end" {
    var boot = start();
    dhcpRom(&boot);
    downloadNbp(&boot);
    loadSystem(&boot);
    streamSystem(&boot);
    at(&boot, 2000, .{ .ready = .stream });
    try expectPhase(&boot, .dhcp, 0, 1);
    try expectPhase(&boot, .nbp, 10, 10);
    try expectPhase(&boot, .loader, 20, 45);
    try expectPhase(&boot, .breather, 65, 835);
    try expectPhase(&boot, .stage2, 901, 1099);
    try expectPhase(&boot, .ready, 2000, 0);
    try testing.expectEqual(.ready, std.meta.activeTag(boot.outcome.?));
    const stage2 = boot.record(.stage2).?;
    try testing.expectEqual(2, stage2.reads);
    try testing.expectEqual(1, stage2.traffic.retries);
    try testing.expectEqual(3, stage2.traffic.missing_fragments);
    try testing.expectEqual(1, stage2.gap_count);
    try testing.expectEqual(.inferred, boot.record(.breather).?.source);
    try testing.expectEqual(.reported, boot.record(.ready).?.source);
}

test "the request before the kernel's start ends what the loader does" {
    var boot = start();
    dhcpRom(&boot);
    downloadNbp(&boot);
    loadSystem(&boot);
    try testing.expectEqual(.breather, boot.current().?);
    at(&boot, 300, .{ .loader_begin = .start });
    try testing.expectEqual(.loader, boot.current().?);
    // It went on without the answer, or nobody saw that it had it.
    var unanswered = boot;
    at(&boot, 302, .{ .loader_end = .start });
    streamSystem(&boot);
    try expectPhase(&boot, .loader, 20, 282);
    try expectPhase(&boot, .breather, 302, 598);
    try testing.expectEqual(300 * ms, boot.loader_steps.boot_command_us.?);
    streamSystem(&unanswered);
    try expectPhase(&unanswered, .loader, 20, 280);
    try expectPhase(&unanswered, .breather, 300, 600);
    // Who knows the handle cannot move it later.
    at(&boot, 950, .{ .loader_begin = .start });
    try testing.expectEqual(300 * ms, boot.loader_steps.boot_command_us.?);
}

test "a power command starts the firmware phase and the first DHCP packet ends it" {
    var boot = start();
    at(&boot, 0, .power_command);
    at(&boot, 2500, .{ .dhcp_request = discover(.rom, 1) });
    try expectPhase(&boot, .firmware, 0, 2500);
    try testing.expectEqual(.dhcp, boot.current().?);
}

test "the second DHCP exchange of one boot, by iPXE, starts no new boot" {
    var boot = start();
    dhcpRom(&boot);
    downloadNbp(&boot);
    try testing.expectEqual(.same_boot, boot.dhcpMeaning(
        boot.started_us + boot.last_us,
        discover(.ipxe, 2),
    ));
    loadSystem(&boot);
    // A new transaction id while iPXE loads is its own retry.
    var loading = start();
    dhcpRom(&loading);
    downloadNbp(&loading);
    at(&loading, 30, .{ .dhcp_request = discover(.ipxe, 2) });
    try testing.expectEqual(
        .same_boot,
        loading.dhcpMeaning(loading.started_us + loading.last_us, discover(.ipxe, 3)),
    );
}

test "a duplicate or delayed DISCOVER of a known transaction starts no new boot" {
    var boot = start();
    dhcpRom(&boot);
    try testing.expectEqual(.same_boot, boot.dhcpMeaning(
        boot.started_us + boot.last_us,
        discover(.rom, 1),
    ));
    try testing.expectEqual(
        .same_boot,
        boot.dhcpMeaning(boot.started_us + boot.last_us, discover(.rom, 77)),
    );
    downloadNbp(&boot);
    loadSystem(&boot);
    for ([_]DhcpRequest{ discover(.rom, 1), discover(.ipxe, 2) }) |request| try testing.expectEqual(
        .same_boot,
        boot.dhcpMeaning(boot.started_us + boot.last_us, request),
    );
}

test "firmware that uses the same transaction id after each reset starts a new boot" {
    var boot = start();
    dhcpRom(&boot);
    downloadNbp(&boot);
    // Its ROM has what it loads: whatever comes later than a copy can is from a machine that was
    // reset, be it still loading.
    const copied_us = boot.started_us + boot.record(.nbp).?.start_us + 10 * std.time.us_per_s;
    try testing.expectEqual(.same_boot, boot.dhcpMeaning(copied_us, discover(.rom, 1)));
    try testing.expectEqual(.new_boot, boot.dhcpMeaning(copied_us + 1, discover(.rom, 1)));
    var taken = discover(.rom, 1);
    taken.message = .request;
    try testing.expectEqual(.same_boot, boot.dhcpMeaning(copied_us + 1, taken));
    // The same of iPXE as ROM; as the program that a ROM has loaded, it retries with one id.
    var native = start();
    at(&native, 0, .{ .dhcp_request = discover(.ipxe, 2) });
    try testing.expectEqual(.same_boot, native.dhcpMeaning(copied_us * 2, discover(.ipxe, 2)));
    loadSystem(&boot);
    try testing.expectEqual(.same_boot, boot.dhcpMeaning(copied_us * 2, discover(.ipxe, 2)));
    streamSystem(&boot);
    // Its token is used from the first moment of the session on.
    const open_us = boot.started_us + boot.record(.breather).?.end_us.?;
    for ([_]DhcpRequest{ discover(.rom, 1), discover(.ipxe, 2) }) |request|
        try testing.expectEqual(.new_boot, boot.dhcpMeaning(open_us, request));
    at(&boot, 2000, .{ .ready = .stream });
    const end_us = boot.started_us + boot.last_us;
    for ([_]DhcpRequest{ discover(.rom, 1), discover(.ipxe, 2) }) |request|
        try testing.expectEqual(.new_boot, boot.dhcpMeaning(end_us, request));
    // Its loader is past: no request can be for this boot any more.
    taken.xid = 99;
    try testing.expectEqual(.new_boot, boot.dhcpMeaning(end_us, taken));
}

test "only its own session says that a device is there" {
    var boot = start();
    dhcpRom(&boot);
    downloadNbp(&boot);
    loadSystem(&boot);
    try testing.expectEqual(0, boot.heard_us);
    streamSystem(&boot);
    const heard_us = boot.heardAt();
    try testing.expect(heard_us > boot.started_us);
    for ([_]Boot.Event{
        .power_command,
        .{ .dhcp_request = discover(.rom, 1) },
        .{ .stream_traffic = .{ .packets_in = 1 } },
        .{ .loader_traffic = .{ .packets_in = 1 } },
        .{ .failed = .{ .cause = .root_not_found } },
    }) |event| at(&boot, 900_000, event);
    try testing.expectEqual(heard_us, boot.heardAt());
    try testing.expect(boot.isRunning());
    at(&boot, 900_001, .{
        .stream_read = .{ .size = 512, .attempt = 0, .missing_fragments = 0 },
    });
    try testing.expectEqual(boot.started_us + 900_001 * std.time.us_per_ms, boot.heardAt());
    var superseded = start();
    superseded.supersede(superseded.started_us + 1);
    superseded.stream_was_open = true;
    try testing.expect(!superseded.isRunning());
}

test "a program that was loaded and never started is the cause only if the device started again" {
    for ([_]bool{ false, true }) |is_left| {
        var boot = start();
        dhcpRom(&boot);
        downloadNbp(&boot);
        boot.is_left = is_left;
        boot.tick(boot.started_us + boot.last_us + 120 * std.time.us_per_s, null);
        if (is_left)
            try testing.expectEqual(.nbp_not_started, boot.outcome.?.failed.cause)
        else
            try testing.expectEqual(.loader, boot.outcome.?.silent);
    }
    // A device that goes on has not.
    var boot = start();
    dhcpRom(&boot);
    boot.is_left = true;
    downloadNbp(&boot);
    try testing.expect(!boot.is_left);
}

test "a DISCOVER of the firmware after a download means that the device started again" {
    var boot = start();
    dhcpRom(&boot);
    downloadNbp(&boot);
    try testing.expectEqual(
        .new_boot,
        boot.dhcpMeaning(boot.started_us + boot.last_us, discover(.rom, 5)),
    );
    var spoken = start();
    dhcpRom(&spoken);
    at(&spoken, 30, .{ .dhcp_request = discover(.ipxe, 2) });
    try testing.expectEqual(
        .new_boot,
        spoken.dhcpMeaning(spoken.started_us + spoken.last_us, discover(.rom, 5)),
    );
}

test "iPXE as the ROM starts again with a DISCOVER after its script, and any client after loading" {
    var native = start();
    at(&native, 0, .{ .dhcp_request = discover(.ipxe, 1) });
    try testing.expectEqual(
        .same_boot,
        native.dhcpMeaning(native.started_us + native.last_us, discover(.ipxe, 2)),
    );
    download(&native, 10, .script);
    try testing.expectEqual(
        .new_boot,
        native.dhcpMeaning(native.started_us + native.last_us, discover(.ipxe, 3)),
    );
    var loaded = start();
    dhcpRom(&loaded);
    downloadNbp(&loaded);
    loadSystem(&loaded);
    try testing.expectEqual(
        .new_boot,
        loaded.dhcpMeaning(loaded.started_us + loaded.last_us, discover(.ipxe, 3)),
    );
    try testing.expectEqual(
        .same_boot,
        loaded.dhcpMeaning(
            loaded.started_us + loaded.last_us,
            .{ .message = .request, .client = .ipxe, .xid = 8, .size = 1 },
        ),
    );
}

test "a boot that is over is followed by a new one at any new transaction" {
    var boot = start();
    dhcpRom(&boot);
    boot.tick(boot.started_us + 61_001 * ms, null);
    try testing.expectEqual(boot_phase.Phase.dhcp, boot.outcome.?.silent);
    try testing.expectEqual(
        .new_boot,
        boot.dhcpMeaning(
            boot.started_us + boot.last_us,
            .{ .message = .request, .client = .rom, .xid = 9, .size = 1 },
        ),
    );
}

test "silence counts from the last packet and by the limit of the phase" {
    var boot = start();
    dhcpRom(&boot);
    boot.tick(boot.started_us + 60_000 * ms, null);
    try testing.expect(!boot.isOver());
    downloadNbp(&boot);
    loadSystem(&boot);
    boot.tick(boot.started_us + 180_064 * ms, null);
    try testing.expect(!boot.isOver());
    boot.tick(boot.started_us + 180_065 * ms, null);
    try testing.expectEqual(boot_phase.Phase.breather, boot.outcome.?.silent);
}

pub fn heardOffer(host: u8, file: []const u8) boot_packets.Offer {
    return .{
        .server = .init(10, 0, 0, host),
        .ours = host == 1,
        .kind = .proxy,
        .file = .init(file),
    };
}

test "a device that took another server's boot offer fails with that server's name" {
    var boot = start();
    dhcpRom(&boot);
    boot.onOffer(boot.started_us + 1 * ms, heardOffer(1, "ours"));
    boot.onPacket(boot.started_us + 2 * ms, .from_device, .{ .name = .dhcp_discover });
    var alone = boot;
    alone.tick(alone.started_us + 61_000 * ms, null);
    try testing.expectEqual(.silent, std.meta.activeTag(alone.outcome.?));
    boot.onOffer(boot.started_us + 3 * ms, heardOffer(9, "pxelinux.0"));
    var asks_on = boot;
    asks_on.onPacket(boot.started_us + 4000 * ms, .from_device, .{ .name = .dhcp_discover });
    asks_on.tick(boot.started_us + 61_000 * ms, null);
    try testing.expectEqual(.silent, std.meta.activeTag(asks_on.outcome.?));
    boot.onPacket(boot.started_us + 4000 * ms, .from_device, .{ .name = .dhcp_request });
    boot.tick(boot.started_us + 61_000 * ms, null);
    try testing.expectEqual(.other_offer_won, boot.outcome.?.failed.cause);
    try testing.expectEqualStrings("10.0.0.9 pxelinux.0", boot.outcome.?.failed.text.slice());
}

test "an offer is recorded until the first download, and is no sign of the device" {
    var boot = start();
    dhcpRom(&boot);
    const last_us = boot.last_us;
    boot.onOffer(boot.started_us + 50_000 * ms, heardOffer(9, "late"));
    try testing.expectEqual(last_us, boot.last_us);
    downloadNbp(&boot);
    boot.onOffer(boot.started_us + 50_000 * ms, heardOffer(8, "later"));
    try testing.expectEqual(1, boot.offers.count());
}

test "a device that reads its disk and then stops has stopped reading" {
    var boot = start();
    dhcpRom(&boot);
    downloadNbp(&boot);
    loadSystem(&boot);
    at(&boot, 500, .{ .stream_open = .{ .resumed = false, .mtu = 1500, .cipher = .aegis_128l } });
    at(&boot, 600, .{ .stream_read = .{ .size = 512, .attempt = 0, .missing_fragments = 0 } });
    boot.tick(boot.started_us + 5_600 * ms, 5_000 * ms);
    try testing.expectEqual(.guest_stopped_reading, boot.outcome.?.failed.cause);
    try testing.expectEqual(boot_phase.Phase.stage2, boot.outcome.?.failed.phase);
}

test "whole retransmitted reads that no new read follows point to a path MTU black hole" {
    var boot = start();
    dhcpRom(&boot);
    at(&boot, 500, .{ .stream_open = .{ .resumed = false, .mtu = 1500, .cipher = .aegis_128l } });
    at(&boot, 510, .{ .stream_read = .{ .size = 4096, .attempt = 0, .missing_fragments = 0 } });
    for (0..Boot.whole_retransmits_max) |_|
        at(&boot, 600, .{ .stream_read = .{ .size = 4096, .attempt = 1, .missing_fragments = 3 } });
    var recovered = boot;
    boot.tick(boot.started_us + 400_000 * ms, null);
    try testing.expectEqual(.path_mtu_black_hole, boot.outcome.?.failed.cause);
    at(&recovered, 700, .{
        .stream_read = .{ .size = 4096, .attempt = 0, .missing_fragments = 0 },
    });
    recovered.tick(recovered.started_us + 400_000 * ms, null);
    try testing.expectEqual(.guest_stopped_reading, recovered.outcome.?.failed.cause);
}

test "a refusal of options is forgotten when the device requests the file again" {
    var boot = start();
    dhcpRom(&boot);
    at(&boot, 10, .nbp_begin);
    at(&boot, 12, .{ .suspected = .{ .cause = .tftp_option_refused } });
    var again = boot;
    boot.tick(boot.started_us + 70_000 * ms, null);
    try testing.expectEqual(.tftp_option_refused, boot.outcome.?.failed.cause);
    at(&again, 14, .nbp_begin);
    again.tick(again.started_us + 80_000 * ms, null);
    try testing.expectEqual(boot_phase.Phase.nbp, again.outcome.?.silent);
}

test "suspected trouble is the cause when the boot stalls, and is forgotten when it advances" {
    var stuck = start();
    dhcpRom(&stuck);
    at(&stuck, 10, .nbp_begin);
    at(&stuck, 12, .{ .suspected = .{ .cause = .tftp_timeout } });
    var recovered = stuck;
    stuck.tick(stuck.started_us + 70_000 * ms, null);
    try testing.expectEqual(.tftp_timeout, stuck.outcome.?.failed.cause);
    try testing.expectEqual(.nbp, stuck.outcome.?.failed.phase);
    downloadNbp(&recovered);
    loadSystem(&recovered);
    recovered.supersede(recovered.started_us + 70_000 * ms);
    try testing.expectEqual(.superseded, std.meta.activeTag(recovered.outcome.?));
}

test "an edge that was away tells others only when it heard a device, not when it may have" {
    var boot = start();
    dhcpRom(&boot);
    downloadNbp(&boot);
    loadSystem(&boot);
    streamSystem(&boot);
    const heard_us = boot.heardAt();
    try testing.expectEqual(heard_us, boot.provedAt());
    boot.onRestart(heard_us + 60_000 * ms);
    try testing.expectEqual(heard_us + 60_000 * ms, boot.heardAt());
    try testing.expectEqual(heard_us, boot.provedAt());
}

test "a boot that its device has left does not run, whatever its outcome is" {
    const failed: Boot.Event = .{ .suspected = .{ .cause = .root_not_found } };
    const told: Boot.Event = .{ .suspected = .{ .cause = .write_cache_lost, .is_hearsay = true } };
    const cases = [_]struct { events: []const Boot.Event, outcome: boot_phase.OutcomeKind }{
        .{ .events = &.{}, .outcome = .superseded },
        .{ .events = &.{failed}, .outcome = .failed },
        // Anybody can tell of a failure: it explains a silence, and decides nothing else.
        .{ .events = &.{told}, .outcome = .superseded },
        .{ .events = &.{ failed, told }, .outcome = .failed },
        .{ .events = &.{.{ .ready = .stream }}, .outcome = .ready },
    };
    for (cases) |case| {
        var boot = start();
        dhcpRom(&boot);
        downloadNbp(&boot);
        loadSystem(&boot);
        streamSystem(&boot);
        for (case.events) |event| at(&boot, 1600, event);
        try testing.expect(boot.isRunning());
        boot.supersede(boot.started_us + 2000 * ms);
        try testing.expectEqual(case.outcome, std.meta.activeTag(boot.outcome.?));
        try testing.expect(!boot.isRunning());
        if (case.outcome == .failed)
            try testing.expectEqual(.root_not_found, boot.outcome.?.failed.cause);
    }
    var silent = start();
    dhcpRom(&silent);
    at(&silent, 10, told);
    silent.tick(silent.started_us + 700_000 * ms, null);
    try testing.expectEqual(.write_cache_lost, silent.outcome.?.failed.cause);
}

test "a program that loads another prolongs the phase until the loader is seen" {
    var boot = start();
    dhcpRom(&boot);
    downloadNbp(&boot);
    try testing.expectEqual(.loader, boot.current().?);
    at(&boot, 100, .nbp_begin);
    try testing.expectEqual(.nbp, boot.current().?);
    at(&boot, 180, .{ .nbp_traffic = .{ .bytes_out = 3_000_000, .packets_out = 2000 } });
    at(&boot, 200, .nbp_end);
    download(&boot, 300, .script);
    // A file that the loader requests like a program belongs to the loader.
    at(&boot, 320, .nbp_begin);
    at(&boot, 330, .nbp_end);
    download(&boot, 400, .kernel);
    download(&boot, 500, .initrd);
    try expectPhase(&boot, .nbp, 10, 190);
    try expectPhase(&boot, .loader, 200, 305);
    try testing.expectEqual(3_090_000, boot.record(.nbp).?.traffic.bytes_out);
}

test "a program whose end was not seen ended with its last acknowledgement" {
    var unseen = start();
    dhcpRom(&unseen);
    at(&unseen, 10, .nbp_begin);
    at(&unseen, 19, .{
        .nbp_traffic = .{ .bytes_out = 90_000, .packets_out = 60, .packets_in = 61 },
    });
    var by_request = unseen;
    loadSystem(&by_request);
    try expectPhase(&by_request, .nbp, 10, 9);
    try expectPhase(&by_request, .loader, 19, 46);

    // A retransmission is no progress of the device.
    at(&unseen, 900, .{ .nbp_traffic = .{ .bytes_out = 1408, .packets_out = 1 } });
    at(&unseen, 2100, .{ .dhcp_request = discover(.ipxe, 2) });
    try testing.expectEqual(.loader, unseen.current().?);
    at(&unseen, 2101, .{ .dhcp_answer = .{ .size = 400 } });
    var told_late = unseen;
    download(&unseen, 2200, .script);
    try expectPhase(&unseen, .nbp, 10, 9);
    try testing.expectEqual(19 * ms, unseen.record(.loader).?.start_us);
    // iPXE acknowledges retransmissions to its predecessor: that program's end is reported late.
    at(&told_late, 20, .nbp_end);
    try expectPhase(&told_late, .nbp, 10, 9);
    try testing.expectEqual(.loader, told_late.current().?);
    try testing.expectEqual(2101 * ms, told_late.last_us);
}

test "an end that is reported after other packets lies before them" {
    var boot = start();
    dhcpRom(&boot);
    at(&boot, 10, .nbp_begin);
    at(&boot, 500, .{
        .dhcp_request = .{ .message = .request, .client = .rom, .xid = 1, .size = 300 },
    });
    at(&boot, 20, .nbp_end);
    try expectPhase(&boot, .nbp, 10, 10);
    download(&boot, 600, .script);
    download(&boot, 700, .kernel);
    at(&boot, 710, .{ .loader_begin = .initrd });
    at(&boot, 730, .{ .loader_end = .script });
    at(&boot, 720, .{ .loader_end = .initrd });
    try expectPhase(&boot, .loader, 20, 710);
    try testing.expectEqual(730 * ms, boot.record(.breather).?.start_us);
}

test "a loader started without its last acknowledgements ended with those that arrived" {
    var boot = start();
    dhcpRom(&boot);
    downloadNbp(&boot);
    at(&boot, 30, .{ .dhcp_request = discover(.ipxe, 2) });
    download(&boot, 40, .kernel);
    at(&boot, 60, .{ .loader_begin = .initrd });
    at(&boot, 90, .{
        .loader_traffic = .{ .bytes_out = 9_000_000, .packets_out = 6000, .packets_in = 3000 },
    });
    // The system's own DHCP client, with the class of a boot ROM.
    at(&boot, 3000, .{
        .dhcp_request = .{ .message = .request, .client = .rom, .xid = 1, .size = 300 },
    });
    at(&boot, 3001, .{ .dhcp_answer = .{ .size = 400 } });
    at(&boot, 4000, .{ .stream_open = .{ .resumed = false, .mtu = 1500, .cipher = .aegis_128l } });
    try expectPhase(&boot, .loader, 20, 70);
    try expectPhase(&boot, .breather, 90, 3910);
}

test "a completely loaded program that starts nothing was refused, unless its loader was seen" {
    var refused = start();
    refused.facts.program = .{ .set = .init("ipxe"), .file = .init("ipxe.efi") };
    dhcpRom(&refused);
    downloadNbp(&refused);
    var spoken = refused;
    var asked = refused;
    try testing.expectEqual(
        .new_boot,
        refused.dhcpMeaning(refused.started_us + refused.last_us, discover(.rom, 5)),
    );
    refused.supersede(refused.started_us + 4000 * ms);
    const failure = refused.outcome.?.failed;
    try testing.expectEqual(.nbp_not_started, failure.cause);
    try testing.expectEqual(boot_phase.Phase.nbp, failure.phase);
    try testing.expectEqualStrings("ipxe.efi", failure.text.slice());
    try testing.expectEqual(null, refused.record(.loader));
    try expectPhase(&refused, .nbp, 10, 10);
    at(&spoken, 30, .{ .dhcp_request = discover(.ipxe, 2) });
    spoken.supersede(spoken.started_us + 4000 * ms);
    try testing.expectEqual(.superseded, std.meta.activeTag(spoken.outcome.?));
    at(&asked, 30, .{ .loader_begin = .script });
    asked.supersede(asked.started_us + 4000 * ms);
    try testing.expectEqual(.superseded, std.meta.activeTag(asked.outcome.?));
    var cut = start();
    dhcpRom(&cut);
    at(&cut, 10, .nbp_begin);
    cut.supersede(cut.started_us + 4000 * ms);
    try testing.expectEqual(.superseded, std.meta.activeTag(cut.outcome.?));
}

test "an occasional store error delays a boot, and a store that keeps failing fails it" {
    var recovers = start();
    dhcpRom(&recovers);
    at(&recovers, 10, .{
        .stream_open = .{ .resumed = false, .mtu = 1500, .cipher = .aegis_128l },
    });
    at(&recovers, 11, .{ .stream_read = .{ .size = 512, .attempt = 0, .missing_fragments = 0 } });
    for (1..Boot.store_errors_max) |_| at(&recovers, 12, .store_error);
    var refuses = recovers;
    at(&recovers, 13, .{ .ready = .stream });
    try testing.expectEqual(.ready, std.meta.activeTag(recovers.outcome.?));
    at(&refuses, 13, .store_error);
    try testing.expectEqual(.store_read_error, refuses.outcome.?.failed.cause);
    try testing.expectEqual(.stage2, refuses.outcome.?.failed.phase);
}

test "a file that is loaded again takes the breather back" {
    var boot = start();
    dhcpRom(&boot);
    downloadNbp(&boot);
    loadSystem(&boot);
    try testing.expectEqual(.breather, boot.current().?);
    at(&boot, 100, .{ .loader_begin = .initrd });
    try testing.expectEqual(.loader, boot.current().?);
    at(&boot, 140, .{ .loader_end = .initrd });
    try expectPhase(&boot, .loader, 20, 120);
}

test "a disk that the loader reads over HTTP is stage 1" {
    var boot = start();
    boot.assignment.loader_files = .{};
    dhcpRom(&boot);
    downloadNbp(&boot);
    download(&boot, 40, .script);
    at(&boot, 50, .{ .stage1_read = .{ .size = 512 } });
    at(&boot, 90, .{ .stage1_read = .{ .size = 65024 } });
    at(&boot, 400, .{ .stream_open = .{ .resumed = false, .mtu = 1500, .cipher = .aegis_128l } });
    try expectPhase(&boot, .loader, 20, 25);
    try expectPhase(&boot, .stage1, 50, 40);
    try expectPhase(&boot, .breather, 90, 310);
    try testing.expectEqual(2, boot.record(.stage1).?.reads);
}

test "a machine that boots its whole disk over HTTP becomes ready without a stream" {
    var boot = start();
    dhcpRom(&boot);
    downloadNbp(&boot);
    download(&boot, 40, .script);
    at(&boot, 60, .{ .stage1_read = .{ .size = 512 } });
    at(&boot, 900, .{ .stage1_traffic = .{ .bytes_out = 512, .packets_out = 1, .packets_in = 1 } });
    at(&boot, 4000, .{ .ready = .stream });
    try testing.expect(!boot.isOver());
    at(&boot, 5000, .{ .ready = .http });
    try testing.expectEqual(.ready, std.meta.activeTag(boot.outcome.?));
    const breather = boot.record(.breather).?;
    try testing.expectEqual(900 * ms, breather.start_us);
    try testing.expectEqual(5000 * ms, breather.end_us.?);
    try testing.expectEqual(null, boot.record(.stage2));
    try testing.expectEqual(.reported, boot.record(.ready).?.source);
}

test "a device's reports count after its boot is over, until it starts again, and end nothing" {
    var boot = start();
    dhcpRom(&boot);
    at(&boot, 10, .{ .stream_open = .{ .resumed = false, .mtu = 1500, .cipher = .aegis_128l } });
    at(&boot, 20, .{ .ready = .stream });
    boot.changed = false;
    const last_us = boot.last_us;
    at(&boot, 5000, .{
        .guest = .{ .uptime_us = 4_000_000, .write_cache_used = 1, .write_cache_size = 100 },
    });
    try testing.expect(boot.changed);
    try testing.expectEqual(.ready, std.meta.activeTag(boot.outcome.?));
    try testing.expectEqual(last_us, boot.last_us);
    try testing.expectEqual(1_000_000, boot.guest.?.kernel_start_us);
    boot.outcome = .superseded;
    at(&boot, 9000, .{
        .guest = .{ .uptime_us = 8_000_000, .write_cache_used = 99, .write_cache_size = 100 },
    });
    try testing.expectEqual(1, boot.guest.?.write_cache.?.used);
}

test "the device's final read times are reported once, with its first report after the boot" {
    var boot = start();
    dhcpRom(&boot);
    at(&boot, 10, .{ .stream_open = .{ .resumed = false, .mtu = 1500, .cipher = .aegis_128l } });
    at(&boot, 15, .{ .guest = .{ .uptime_us = 4_000_000 } });
    at(&boot, 20, .{ .ready = .stream });
    boot.changed = false;
    var fetch: base.DurationHistogram = .{};
    fetch.note(900);
    var list: stream.ReadTimeList = .empty;
    list.append(.whole, .fetch, &fetch);
    at(&boot, 5000, .{ .guest = .{ .uptime_us = 4_000_000, .read_times = list.view() } });
    try testing.expect(boot.changed);
    try testing.expectEqual(1, boot.read_times.initramfs.fetch.count());
    boot.changed = false;
    at(&boot, 9000, .{ .guest = .{ .uptime_us = 8_000_000, .read_times = list.view() } });
    try testing.expect(!boot.changed);
}

test "a resumed stream belongs to its boot" {
    var boot = start();
    dhcpRom(&boot);
    streamSystem(&boot);
    at(&boot, 1600, .{ .stream_open = .{ .resumed = true, .mtu = 1500, .cipher = .aegis_128l } });
    try testing.expectEqual(1, boot.reconnects);
    try testing.expect(!boot.isOver());
}

test "nothing changes a boot that is over" {
    var boot = start();
    dhcpRom(&boot);
    at(&boot, 5, .{ .failed = .{ .cause = .nbp_not_found } });
    const before = boot;
    downloadNbp(&boot);
    boot.supersede(boot.started_us + 1);
    boot.tick(boot.started_us + 1_000_000 * ms, null);
    try testing.expectEqualDeep(before.outcome, boot.outcome);
    try testing.expectEqual(null, boot.record(.nbp));
    try testing.expectEqual(.dhcp, boot.outcome.?.failed.phase);
}

test "any order of events keeps phases within the boot and never ends one before its start" {
    var prng: base.Prng = .init(11);
    for (0..2000) |_| {
        var boot = start();
        var now_ms: u64 = 0;
        for (0..prng.below(40)) |_| {
            now_ms += prng.below(400);
            at(&boot, now_ms, randomEvent(&prng));
        }
        if (prng.chance(1, 2)) boot.tick(boot.started_us + (now_ms + 400_000) * ms, null);
        for (boot.phases) |place| {
            const record = place orelse continue;
            try testing.expect(record.start_us <= record.last_us or record.source == .inferred);
            if (record.end_us) |end_us| try testing.expect(record.start_us <= end_us);
            if (boot.isOver()) try testing.expect(record.end_us != null);
        }
    }
}

fn randomEvent(prng: *base.Prng) Boot.Event {
    const file = prng.pick(Boot.LoaderFile, &.{ .script, .kernel, .initrd, .other, .start });
    const client = prng.pick(Boot.DhcpClient, &.{ .rom, .ipxe });
    return switch (prng.below(17)) {
        0 => .power_command,
        1, 2 => .{ .dhcp_request = discover(client, prng.nextU32()) },
        3 => .{ .dhcp_answer = .{ .size = 300 } },
        4 => .nbp_begin,
        5 => .{ .nbp_traffic = .{ .bytes_out = 1000 } },
        6 => .nbp_end,
        7, 8 => .{ .loader_begin = file },
        9, 10 => .{ .loader_end = file },
        11 => .{ .stage1_read = .{ .size = 512 } },
        12 => .{
            .stream_open = .{ .resumed = prng.chance(1, 2), .mtu = 1500, .cipher = .aegis_128l },
        },
        13 => .{ .stream_read = .{ .size = 4096, .attempt = 0, .missing_fragments = 0 } },
        15 => .store_error,
        14 => .{ .suspected = .{ .cause = .tftp_timeout } },
        else => .{ .stream_traffic = .{ .bytes_out = 4096 } },
    };
}

test "a machine that becomes ready by HTTP alone has its DHCP end with the last answer" {
    var boot = start();
    dhcpRom(&boot);
    at(&boot, 5000, .{ .ready = .http });
    try expectPhase(&boot, .dhcp, 0, 1);
    try expectPhase(&boot, .breather, 1, 4999);
}

test "what is recorded of a boot has to be journaled" {
    var boot = start();
    dhcpRom(&boot);
    boot.touched = false;
    boot.onOffer(boot.started_us + 1 * ms, heardOffer(9, "theirs"));
    try testing.expect(boot.touched);
    boot.touched = false;
    // The same offer again is nothing new.
    boot.onOffer(boot.started_us + 2 * ms, heardOffer(9, "theirs"));
    try testing.expect(!boot.touched);
    boot.onPacket(boot.started_us + 3 * ms, .from_device, .{ .name = .dhcp_request });
    try testing.expect(boot.touched);
}
