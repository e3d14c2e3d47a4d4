//! Tests of report.zig: the JSON of a boot's report, and what it leaves out when not all fits.

const std = @import("std");
const base = @import("base");
const boot_packets = @import("packets.zig");
const boot_phase = @import("phase.zig");
const Boot = @import("boot.zig");
const BootReadTimes = @import("read_times.zig");
const Part = BootReadTimes.Part;
const report = @import("report.zig");
const stream = @import("wire").stream;

const assert = std.debug.assert;
const encode = report.encode;
const number_max = report.number_max;
const size_max = report.size_max;
const testing = std.testing;
const vector_json = @embedFile("boot_loading_vectors_json");
const Phase = boot_phase.Phase;
const PhaseRecord = boot_phase.PhaseRecord;

/// A boot of a described device, with the facts that its first packets tell.
pub fn testBoot() Boot {
    var boot: Boot = .init(.{
        .id = .fromRandom(@splat(0xab)),
        .mac = .{ .bytes = .{ 2, 0xbf, 0, 0, 0, 1 } },
        .handle = 7,
        .token = @splat(9),
    }, .{
        .version_id = .fromRandom(@splat(1)),
        .vdisk_id = .fromRandom(@splat(2)),
        .device_id = .fromRandom(@splat(3)),
        .managed = true,
    }, 0, 1_795_000_000_000);
    boot.facts = .{
        .machine_id = .fromRandom(@splat(4)),
        .client_arch = 0,
        .vendor_class = .init("PXEClient:Arch:00000:UNDI:002001"),
        .user_class = .init("bootfarm-sim"),
        .ip = .init(127, 77, 0, 10),
        .mtu = 1500,
        .program = .{ .set = .init("ipxe"), .file = .init("undionly.kpxe") },
    };
    return boot;
}

test "a boot of an experiment names its trial" {
    var boot = testBoot();
    var buffer: [size_max]u8 = undefined;
    const name = "\"trial\":\"09090909-0909-4909-8909-090909090909\"";
    try testing.expect(std.mem.find(u8, encode(&boot, .{ .revision = 1 }, &buffer), name) == null);
    boot.assignment.trial = .fromRandom(@splat(9));
    try testing.expect(std.mem.find(u8, encode(&boot, .{ .revision = 1 }, &buffer), name) != null);
}

test "files and the series of a boot have their own capacity, whatever they are named" {
    var boot = testBoot();
    var buffer: [size_max]u8 = undefined;
    const bare = encode(&boot, .{ .revision = 1 }, &buffer).len;
    const hostile: [64]u8 = @splat('"');
    for (0..40) |index| {
        var name = hostile;
        name[0] = @intCast('a' + index % 26);
        name[1] = @intCast('a' + index / 26);
        const file = boot.transfers.onRequest(index, .tftp, &name);
        boot.transfers.onProgress(file, std.math.maxInt(u64), .{
            .bytes = std.math.maxInt(u64),
            .retransmitted = std.math.maxInt(u64),
            .outcome = .timeout,
        });
    }
    for (0..64) |index| {
        boot.series.onSent(index * 100_000, std.math.maxInt(u64), std.math.maxInt(u64));
        boot.series.onRead(index * 100_000);
    }
    const text = encode(&boot, .{ .revision = 1 }, &buffer);
    try testing.expect(text.len < bare + 2048 + 1600);
    const parsed = try std.json.parseFromSlice(std.json.Value, testing.allocator, text, .{});
    defer parsed.deinit();
    const fields = parsed.value.object;
    const listed = fields.get("transfers").?.array.items.len;
    try testing.expect(listed > 4 and listed < 24);
    try testing.expectEqual(40, listed + @as(u64, @intCast(
        fields.get("transfersLeftOut").?.integer,
    )));
    const series = fields.get("series").?.object;
    for ([_][]const u8{ "bytes", "retransmissions", "reads" }) |list|
        try testing.expectEqual(64, series.get(list).?.array.items.len);
}

test "a boot's loading is reported as the control plane reads it" {
    var boot = testBoot();
    boot.loader_steps.onRequest(.script, 1000);
    boot.loader_steps.onEnd(.script, 1500);
    boot.loader_steps.onRequest(.kernel, 2000);
    boot.loader_steps.onRequest(.start, 7000);
    _ = boot.transfers.onRequest(2000, .http, "kernel");
    const kernel = boot.transfers.onRequest(2500, .http, "kernel");
    boot.transfers.onProgress(
        kernel,
        6000,
        .{ .bytes = 700, .retransmitted = 3, .outcome = .done },
    );
    boot.transfers.onMissing(2100, .tftp, "pxelinux.cfg/\n\"default");
    _ = boot.transfers.onRequest(7000, .http, "start");
    boot.transfers.left_out = 2;
    boot.series.onRead(100_000);
    boot.series.onSent(250_000, 9, 2);
    var buffer: [size_max]u8 = undefined;
    const text = encode(&boot, .{ .revision = 1 }, &buffer);
    const Vector = struct { note: []const u8, report: std.json.Value };
    const vector = try std.json.parseFromSlice(Vector, testing.allocator, vector_json, .{});
    defer vector.deinit();
    const wanted = try std.json.Stringify.valueAlloc(testing.allocator, vector.value.report, .{});
    defer testing.allocator.free(wanted);
    errdefer std.debug.print("{s}\n{s}\n", .{ wanted, text });
    // Within its braces: the report has more before it, and after it.
    try testing.expect(std.mem.find(u8, text, wanted[1 .. wanted.len - 1]) != null);
}

test "a report is the JSON of UPLINK.md" {
    var boot = testBoot();
    boot.facts.machine_id = null;
    boot.assignment.managed = false;
    boot.apply(
        0,
        .{ .dhcp_request = .{ .message = .discover, .client = .rom, .xid = 1, .size = 300 } },
    );
    boot.apply(1000, .{ .failed = .{ .cause = .nbp_not_found, .text = .init("x\"y") } });
    var buffer: [size_max]u8 = undefined;
    try testing.expectEqualStrings(
        "{\"id\":\"abababab-abab-4bab-abab-abababababab\",\"revision\":3,\"mac\":\"02:bf:00:00:00:01\"," ++
            "\"simulated\":true,\"generated\":false,\"startedUnixMs\":1795000000000,\"clientArch\":0," ++
            "\"vendorClass\":\"PXEClient:Arch:00000:UNDI:002001\",\"userClass\":\"bootfarm-sim\"," ++
            "\"ip\":\"127.77.0.10\",\"mtu\":1500,\"program\":{\"set\":\"ipxe\",\"file\":\"undionly.kpxe\"},\"reconnects\":0,\"phases\":[{\"name\":\"dhcp\",\"startUs\":0," ++
            "\"durationUs\":1000,\"source\":\"observed\",\"bytesIn\":300,\"bytesOut\":0,\"packetsIn\":1," ++
            "\"packetsOut\":0,\"retries\":0,\"missingFragments\":0,\"reads\":0}]," ++
            "\"outcome\":{\"kind\":\"failed\",\"phase\":\"dhcp\",\"cause\":\"nbp_not_found\",\"text\":\"x\\\"y\"}}",
        encode(&boot, .{ .revision = 3 }, &buffer),
    );
}

test "a report with every field stays within its size and is JSON" {
    var boot = testBoot();
    var full: PhaseRecord = .init(1, .observed);
    var steps: stream.StepList = .empty;
    for (0..12) |index| full.touch((index + 1) * 1_000_000_000 + index);
    full.count(
        .{
            .bytes_in = 1 << 60,
            .bytes_out = 1 << 60,
            .packets_in = 1 << 60,
            .packets_out = 1 << 60,
        },
    );
    full.countRead(1 << 60);
    full.end_us = 1 << 60;
    for (&boot.phases) |*place| place.* = full;
    boot.facts.user_class = .init(&@as([64]u8, @splat('"')));
    boot.facts.vendor_class = .init(&@as([64]u8, @splat('\\')));
    boot.apply(1, .{ .guest = fullReport(&steps) });
    fillOffers(&boot);
    boot.stream_was_open = true;
    const endless: base.DurationHistogram =
        .{ .counts = @splat(std.math.maxInt(u32)), .sum_us = std.math.maxInt(u64) };
    boot.read_times.system = .{ .bytes = std.math.maxInt(u64) };
    for ([_]*Part{ &boot.read_times.initramfs, &boot.read_times.system.? }) |part| {
        inline for (Part.histogram_names) |name| @field(part, name) = endless;
    }
    boot.read_ahead = .{
        .had_profile = true,
        .asked_bytes = 1 << 60,
        .used_bytes = 1 << 59,
        .waited_reads = 1 << 60,
    };
    boot.outcome = .{
        .failed = .{
            .phase = .stage2,
            .cause = .guest_reported_failure,
            .text = boot.facts.user_class,
        },
    };
    var buffer: [size_max]u8 = undefined;
    const text = encode(&boot, .{ .revision = 1 << 60 }, &buffer);
    const parsed = try std.json.parseFromSlice(std.json.Value, testing.allocator, text, .{});
    defer parsed.deinit();
    try testing.expectEqual(Phase.count, parsed.value.object.get("phases").?.array.items.len);
    const stage2 = parsed.value.object.get("phases").?.array.items[6].object;
    for ([_][]const u8{ "bytesIn", "bytesOut", "packetsIn", "packetsOut" }) |name|
        try testing.expectEqual(number_max, stage2.get(name).?.integer);
    const guest = parsed.value.object.get("guest").?.object;
    try testing.expect(guest.get("steps").?.array.items.len >= 4);
    try testing.expect(parsed.value.object.get("offers").?.array.items.len >= 2);
    try testing.expectEqual(
        number_max,
        guest.get("writeCache").?.object.get("sizeBytes").?.integer,
    );
    const read_ahead = parsed.value.object.get("readAhead").?.object;
    try testing.expect(read_ahead.get("hadProfile").?.bool);
    for ([_][]const u8{ "askedBytes", "usedBytes", "waitedReads" }) |name|
        try testing.expectEqual(number_max, read_ahead.get(name).?.integer);
}

/// As large as servers can make them.
fn fillOffers(boot: *Boot) void {
    const quotes: base.UntrustedText = .init(&@as([64]u8, @splat('"')));
    for (0..boot_packets.offers_max) |index| {
        const ip: base.Ip4 = .init(192, 168, 100, @intCast(100 + index));
        assert(boot.offers.add(.{
            .at_us = std.math.maxInt(u64),
            .server = ip,
            .ours = false,
            .kind = .address,
            .your_ip = ip,
            .next_server = ip,
            .relay = ip,
            .file = quotes,
            .vendor_class = quotes,
        }));
    }
    const packet: boot_packets.Packet = .{ .name = .stream_bytes, .number = std.math.maxInt(u64) };
    boot.last_packets.record(.from_device, std.math.maxInt(u64), packet);
    boot.last_packets.record(.from_edge, std.math.maxInt(u64), packet);
}

test "a failed boot reports the offers seen and the last packets, a ready one no packets" {
    var boot = testBoot();
    boot.onOffer(1000, .{
        .server = .init(10, 0, 0, 2),
        .ours = false,
        .kind = .both,
        .your_ip = .init(10, 0, 0, 50),
        .file = .init("pxelinux.0"),
    });
    boot.onPacket(2000, .from_device, .{
        .name = .dhcp_request,
        .number = base.Ip4.init(10, 0, 0, 2).toInt(),
    });
    boot.onPacket(3000, .from_edge, .{ .name = .dhcp_offer });
    const heard =
        "\"offers\":[{\"atUs\":1000,\"server\":\"10.0.0.2\",\"ours\":false,\"kind\":\"both\"," ++
        "\"yourIp\":\"10.0.0.50\",\"file\":\"pxelinux.0\"}],";
    const last =
        "\"lastPackets\":{\"fromDevice\":{\"atUs\":2000,\"what\":\"DHCP REQUEST to 10.0.0.2\"}," ++
        "\"fromEdge\":{\"atUs\":3000,\"what\":\"DHCP OFFER\"}},";
    var buffer: [size_max]u8 = undefined;
    try testing.expect(
        std.mem.find(u8, encode(&boot, .{ .revision = 1 }, &buffer), heard ++ last) != null,
    );
    boot.outcome = .ready;
    const text = encode(&boot, .{ .revision = 1 }, &buffer);
    try testing.expect(std.mem.find(u8, text, heard) != null);
    try testing.expectEqual(null, std.mem.find(u8, text, "lastPackets"));
}

/// As large as a device can make it.
fn fullReport(steps: *stream.StepList) stream.Report {
    while (true) steps.append(.{
        .group = .initramfs,
        .name = &@as([32]u8, @splat('"')),
        .start_us = std.math.minInt(i64),
        .duration_us = std.math.maxInt(u64),
    }) catch break;
    return .{
        .uptime_us = std.math.maxInt(u64),
        .order_id = @splat(0xab),
        .write_cache_used = std.math.maxInt(u64),
        .write_cache_size = std.math.maxInt(u64),
        .steps = steps.view(),
    };
}

test "a device's steps are in the report, in order of start" {
    var boot = testBoot();
    var steps: stream.StepList = .empty;
    try steps.append(
        .{ .group = .kernel, .name = "kernel", .start_us = 0, .duration_us = 812_000 },
    );
    try steps.append(
        .{ .group = .firmware, .name = "POST", .start_us = -8_000_000, .duration_us = 6_000_000 },
    );
    boot.apply(5_000_000, .{ .guest = .{
        .uptime_us = 1_500_000,
        .write_cache_used = 1 << 20,
        .write_cache_size = 1 << 30,
        .steps = steps.view(),
    } });
    var buffer: [size_max]u8 = undefined;
    const text = encode(&boot, .{ .revision = 1 }, &buffer);
    try testing.expect(std.mem.endsWith(u8, text, "\"phases\":[]," ++
        "\"guest\":{\"kernelStartUs\":3500000,\"steps\":[" ++
        "{\"group\":\"firmware\",\"name\":\"POST\",\"startUs\":-8000000,\"durationUs\":6000000}," ++
        "{\"group\":\"kernel\",\"name\":\"kernel\",\"startUs\":0,\"durationUs\":812000}]," ++
        "\"writeCache\":{\"usedBytes\":1048576,\"sizeBytes\":1073741824,\"atUs\":5000000}}}"));
}

test "a lost session is in the report, with its silence instead of the device's own" {
    var boot = testBoot();
    boot.apply(0, .{ .stream_open = .{ .resumed = false, .mtu = 1500, .cipher = .aegis_128l } });
    boot.apply(1, .{ .guest = .{ .uptime_us = 1 } });
    boot.guest.?.is_silent = true;
    _ = boot.onLost(5_000_000, &.{ .reason = .version_changed });
    var buffer: [size_max]u8 = undefined;
    var text = encode(&boot, .{ .revision = 1 }, &buffer);
    try testing.expect(std.mem.endsWith(u8, text, "\"steps\":[]}," ++
        "\"lost\":{\"reason\":\"version_changed\",\"atUs\":5000000}}"));
    boot.lost = null;
    _ = boot.onLost(6_000_000, &.{
        .reason = .refused,
        .refusal = .cache_lost,
        .restart_in_s = 60,
        .order_id = .fromRandom(@splat(7)),
    });
    boot.checkSilence(66_000_000);
    text = encode(&boot, .{ .revision = 1 }, &buffer);
    try testing.expect(std.mem.endsWith(u8, text, "\"lost\":{\"reason\":\"refused\"," ++
        "\"refusal\":\"cache_lost\",\"atUs\":6000000,\"restartAtUs\":66000000," ++
        "\"powerOrderId\":\"07070707-0707-4707-8707-070707070707\"},\"silentSinceUs\":6000000}"));
}

test "read times are written from their first bucket to their last, and only those measured" {
    var boot = testBoot();
    boot.read_times.onRead(4096, .{ .is_cold = false, .storage_us = 3, .send_us = 70 });
    boot.read_times.onRead(1024, .{ .is_cold = false, .storage_us = 9, .send_us = 71 });
    var sent: BootReadTimes.SentAnswer =
        .{ .request_id = 1, .arrived_at_us = 10, .at_us = 80, .is_repeated = false };
    boot.read_times.onSent(sent);
    sent.at_us = 83;
    sent.is_repeated = true;
    boot.read_times.onSent(sent);
    var told: stream.FetchTimeBuffer(1) = .{};
    try testing.expect(told.append(.{ .request_id = 1, .fetch_us = 74 }));
    boot.read_times.onFetched(told.view(), 100);
    var buffer: [size_max]u8 = undefined;
    try testing.expect(std.mem.find(u8, encode(&boot, .{ .revision = 1 }, &buffer), "" ++
        "\"readTimes\":{\"bytes\":5120," ++
        "\"warm\":{\"firstBucket\":2,\"counts\":[1,0,1],\"maxUs\":9,\"sumUs\":12}," ++
        "\"send\":{\"firstBucket\":7,\"counts\":[2],\"maxUs\":71,\"sumUs\":141}," ++
        "\"late\":{\"firstBucket\":2,\"counts\":[1],\"maxUs\":3,\"sumUs\":3}," ++
        "\"wire\":{\"firstBucket\":3,\"counts\":[1],\"maxUs\":4,\"sumUs\":4}}") != null);
}

test "read times are written for the boot and each phase, even one without reads" {
    var boot = testBoot();
    boot.read_times.onRead(512, .{ .is_cold = false, .storage_us = 3, .send_us = 70 });
    boot.read_times.system = .{};
    const first =
        "\"warm\":{\"firstBucket\":2,\"counts\":[1],\"maxUs\":3,\"sumUs\":3},\"send\":{\"firstBucket\":7,\"counts\":[1],\"maxUs\":70,\"sumUs\":70}";
    var buffer: [size_max]u8 = undefined;
    try testing.expect(std.mem.find(u8, encode(&boot, .{ .revision = 1 }, &buffer), "" ++
        "\"readTimes\":{\"bytes\":512," ++ first ++
        ",\"phases\":[{\"name\":\"initramfs\",\"bytes\":512," ++ first ++ "},{\"name\":\"system\",\"bytes\":0}]}") != null);
    boot.read_times.onRead(1024, .{ .is_cold = true, .storage_us = 4, .send_us = 1 });
    const text = encode(&boot, .{ .revision = 1 }, &buffer);
    try testing.expect(std.mem.find(u8, text, "\"readTimes\":{\"bytes\":1536,") != null);
    try testing.expect(
        std.mem.find(
            u8,
            text,
            "{\"name\":\"system\",\"bytes\":1024,\"cold\":{\"firstBucket\":3,\"counts\":[1],\"maxUs\":4,\"sumUs\":4},\"send\":",
        ) != null,
    );
}

test "a device with many units keeps its own steps and its slowest units when not all fit" {
    var boot = testBoot();
    for (&boot.phases, 0..) |*place, index| {
        place.* = .init(index, .observed);
        place.*.?.end_us = 9_000_000;
        place.*.?.traffic = .{
            .bytes_in = 1 << 40,
            .bytes_out = 1 << 40,
            .packets_in = 1 << 40,
            .packets_out = 1 << 40,
        };
    }
    var steps: stream.StepList = .empty;
    for (0..stream.steps_max) |index| try steps.append(.{
        .group = if (index < 4) .kernel else .unit,
        .name = "a-unit-of-some.service",
        .start_us = @intCast(index * 1_000_000),
        .duration_us = if (index < 4) 1 else index * 1000,
    });
    boot.apply(1, .{ .guest = .{ .uptime_us = 1, .steps = steps.view() } });
    var buffer: [size_max]u8 = undefined;
    var buffer_of_times: [size_max]u8 = undefined;
    const text = encode(&boot, .{ .revision = 1 }, &buffer);
    const parsed = try std.json.parseFromSlice(std.json.Value, testing.allocator, text, .{});
    defer parsed.deinit();
    const kept = parsed.value.object.get("guest").?.object.get("steps").?.array.items;
    try testing.expect(kept.len >= 12 and kept.len < stream.steps_max);
    // Read times displace none of them.
    for (1..20) |digit| boot.read_times.onRead(512, .{
        .is_cold = digit % 2 == 0,
        .storage_us = @as(u64, 1) << @intCast(digit),
        .send_us = @as(u64, 1) << @intCast(digit),
    });
    boot.read_times.system = boot.read_times.initramfs;
    const with_times = encode(&boot, .{ .revision = 1 }, &buffer_of_times);
    try testing.expect(
        std.mem.count(u8, with_times, "\"startUs\"") >= std.mem.count(u8, text, "\"startUs\""),
    );
    try testing.expect(std.mem.find(u8, with_times, "\"name\":\"system\"") != null);
    for (kept[0..4]) |step|
        try testing.expectEqualStrings("kernel", step.object.get("group").?.string);
    const dropped = stream.steps_max - kept.len;
    try testing.expectEqual(
        @as(i64, @intCast(4 + dropped)) * 1000,
        kept[4].object.get("durationUs").?.integer,
    );
}

test "the longest gaps survive when not all fit" {
    var boot = testBoot();
    for (&boot.phases, 0..) |*place, index| {
        place.* = .init(index, .observed);
        place.*.?.end_us = 9_000_000;
    }
    var record = &boot.phases[@backingInt(Phase.stage2)].?;
    for ([_]u64{
        300_000,
        310_000,
        5_000_000,
        320_000,
        330_000,
        340_000,
        350_000,
        360_000,
    }) |silence_us|
        record.touch(record.last_us + silence_us);
    var buffer: [size_max]u8 = undefined;
    const text = encode(&boot, .{ .revision = 1 }, &buffer);
    try testing.expect(std.mem.find(u8, text, "\"durationUs\":5000000}") != null);
}

test "one read and one gap are in the report, with the sizes up to the largest read" {
    var boot = testBoot();
    var record: PhaseRecord = .init(1, .observed);
    record.countRead(512);
    record.touch(1_000_000_000);
    record.end_us = 1_000_000_001;
    boot.phases[@backingInt(Phase.stage2)] = record;
    var buffer: [size_max]u8 = undefined;
    const text = encode(&boot, .{ .revision = 1 }, &buffer);
    errdefer std.debug.print("{s}\n", .{text});
    try testing.expect(std.mem.find(u8, text, "\"reads\":1,\"readSizes\":[1],") != null);
    const gap = "\"gaps\":[{\"atUs\":1,\"durationUs\":999999999}]";
    try testing.expect(std.mem.find(u8, text, gap) != null);
    // Without them, neither is there.
    boot.phases[@backingInt(Phase.stage2)] = .init(1, .observed);
    const bare = encode(&boot, .{ .revision = 1 }, &buffer);
    try testing.expectEqual(null, std.mem.find(u8, bare, "readSizes"));
    try testing.expectEqual(null, std.mem.find(u8, bare, "gaps"));
}

test "a boot that failed over, with all that is known of it, is the JSON of UPLINK.md" {
    var boot = testBoot();
    boot.facts.vendor_class = .init("v");
    boot.facts.user_class = .init("u");
    boot.facts.cipher = .aegis_128l;
    boot.failover = .{ .number = 2, .from_edge = .fromRandom(@splat(5)), .at_us = 77 };
    boot.resumed_us = 78;
    boot.menu_entry = .init("m");
    boot.onOffer(1000, .{
        .server = .init(10, 0, 0, 2),
        .ours = false,
        .kind = .both,
        .your_ip = .init(10, 0, 0, 50),
        .next_server = .init(10, 0, 0, 3),
        .relay = .init(10, 0, 0, 1),
        .file = .init("f"),
        .vendor_class = .init("c"),
    });
    boot.onPacket(2000, .from_edge, .{ .name = .dhcp_offer });
    for ([_]u64{ 0, 100 }) |seconds| boot.apply(seconds * std.time.us_per_s, .{ .guest = .{
        .uptime_us = seconds * std.time.us_per_s,
        .order_id = @splat(0x1b),
        .write_cache_used = seconds,
        .write_cache_size = 1000,
    } });
    _ = boot.guest.?.setCacheStatus(.{ .class = .edge, .state = .read_only });
    boot.guest.?.is_silent = true;
    boot.outcome = .{ .silent = .dhcp };
    var buffer: [size_max]u8 = undefined;
    try testing.expectEqualStrings(
        "{\"id\":\"abababab-abab-4bab-abab-abababababab\",\"revision\":9,\"mac\":\"02:bf:00:00:00:01\"," ++
            "\"machineId\":\"04040404-0404-4404-8404-040404040404\"," ++
            "\"deviceId\":\"03030303-0303-4303-8303-030303030303\"," ++
            "\"vdiskId\":\"02020202-0202-4202-8202-020202020202\"," ++
            "\"versionId\":\"01010101-0101-4101-8101-010101010101\"," ++
            "\"simulated\":false,\"generated\":true,\"startedUnixMs\":1795000000000,\"clientArch\":0," ++
            "\"vendorClass\":\"v\",\"userClass\":\"u\",\"ip\":\"127.77.0.10\",\"mtu\":1500,\"cipher\":\"aegis_128l\"," ++
            "\"program\":{\"set\":\"ipxe\",\"file\":\"undionly.kpxe\"},\"reconnects\":0,\"resumedUs\":78," ++
            "\"handOver\":{\"number\":2,\"fromEdgeId\":\"05050505-0505-4505-8505-050505050505\",\"atUs\":77}," ++
            "\"offers\":[{\"atUs\":1000,\"server\":\"10.0.0.2\",\"ours\":false,\"kind\":\"both\"," ++
            "\"yourIp\":\"10.0.0.50\",\"nextServer\":\"10.0.0.3\",\"relay\":\"10.0.0.1\",\"file\":\"f\",\"vendorClass\":\"c\"}]," ++
            "\"menuEntry\":\"m\",\"lastPackets\":{\"fromEdge\":{\"atUs\":2000,\"what\":\"DHCP OFFER\"}}," ++
            "\"phases\":[],\"guest\":{\"kernelStartUs\":0,\"steps\":[],\"writeCache\":{\"usedBytes\":100," ++
            "\"sizeBytes\":1000,\"atUs\":100000000,\"class\":\"edge\",\"state\":\"read_only\",\"fullInSeconds\":900}," ++
            "\"powerOrderId\":\"1b1b1b1b-1b1b-1b1b-1b1b-1b1b1b1b1b1b\"},\"silentSinceUs\":100000000," ++
            "\"outcome\":{\"kind\":\"silent\",\"phase\":\"dhcp\"}}",
        encode(&boot, .{ .revision = 9, .generated = true }, &buffer),
    );
}

test "no number leaves the range in which JSON is exact" {
    var boot = testBoot();
    const packet: boot_packets.Packet = .{ .name = .dhcp_ack };
    boot.last_packets.record(.from_device, std.math.maxInt(u64), packet);
    boot.offers.slots[0] = .{
        .at_us = std.math.maxInt(u64),
        .server = .zero,
        .ours = false,
        .kind = .address,
    };
    boot.read_times.initramfs = .{
        .bytes = std.math.maxInt(u64),
        .warm = .{ .counts = @splat(1), .sum_us = std.math.maxInt(u64) },
    };
    var record: PhaseRecord = .init(0, .observed);
    record.reads = 1;
    record.read_sizes[1] = std.math.maxInt(u64);
    boot.phases[0] = record;
    // A record that says nothing of its sizes.
    record.read_sizes = @splat(0);
    boot.phases[1] = record;
    var buffer: [size_max]u8 = undefined;
    const text = encode(&boot, .{ .revision = 1 }, &buffer);
    for ([_][]const u8{
        "\"fromDevice\":{\"atUs\":9007199254740991,",
        "\"offers\":[{\"atUs\":9007199254740991,",
        "\"readTimes\":{\"bytes\":9007199254740991,",
        "\"sumUs\":9007199254740991}",
        "\"readSizes\":[0,9007199254740991]",
        "\"readSizes\":[]",
    }) |part| try testing.expect(std.mem.find(u8, text, part) != null);
}

test "a report says what the device has proved" {
    var boot = testBoot();
    var buffer: [size_max]u8 = undefined;
    const before = encode(&boot, .{ .revision = 1 }, &buffer);
    try testing.expect(std.mem.find(u8, before, "deviceKey") == null);
    boot.device_key = .{ .label = .key_changed, .key = @splat(0xab), .revision = 2 };
    const said = "\"deviceKey\":{\"label\":\"key_changed\"," ++
        "\"key\":\"q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=\",\"revision\":2}";
    try testing.expect(std.mem.find(u8, encode(&boot, .{ .revision = 1 }, &buffer), said) != null);
    boot.device_key = .{ .label = .no_key };
    const none = "\"deviceKey\":{\"label\":\"no_key\"}";
    try testing.expect(std.mem.find(u8, encode(&boot, .{ .revision = 1 }, &buffer), none) != null);
}

test "the loader's steps are in the report, one in progress without its end" {
    var boot = testBoot();
    var buffer: [size_max]u8 = undefined;
    const bare = encode(&boot, .{ .revision = 1 }, &buffer);
    try testing.expectEqual(null, std.mem.find(u8, bare, "loaderSteps"));
    const ms = std.time.us_per_ms;
    const request: Boot.DhcpRequest =
        .{ .message = .discover, .client = .ipxe, .xid = 2, .size = 300 };
    // Before the program, DHCP is a phase of its own.
    boot.apply(0, .{ .dhcp_request = request });
    boot.apply(10 * ms, .nbp_begin);
    boot.apply(20 * ms, .nbp_end);
    boot.apply(30 * ms, .{ .dhcp_request = request });
    boot.apply(35 * ms, .{ .dhcp_answer = .{ .size = 400 } });
    boot.apply(40 * ms, .{ .loader_begin = .script });
    boot.apply(42 * ms, .{ .loader_end = .script });
    boot.apply(50 * ms, .{ .loader_begin = .kernel });
    const text = encode(&boot, .{ .revision = 1 }, &buffer);
    const steps = "\"loaderSteps\":[{\"name\":\"dhcp\",\"startUs\":30000,\"durationUs\":5000}," ++
        "{\"name\":\"script\",\"startUs\":40000,\"durationUs\":2000}," ++
        "{\"name\":\"kernel\",\"startUs\":50000}]";
    errdefer std.debug.print("{s}\n", .{text});
    try testing.expect(std.mem.find(u8, text, steps) != null);
    try testing.expectEqual(null, std.mem.find(u8, text, "bootCommandUs"));
    boot.apply(60 * ms, .{ .loader_begin = .start });
    const started = encode(&boot, .{ .revision = 2 }, &buffer);
    try testing.expect(
        std.mem.find(u8, started, "\"startUs\":50000}],\"bootCommandUs\":60000,") != null,
    );
}

test "what the device says that it is lies in the report, and what it does not know does not" {
    var boot = testBoot();
    _ = boot.facts.onMachine(&.{ .cpu_count = 4, .memory_mib = 8192 });
    var buffer: [size_max]u8 = undefined;
    const bare = "\"machine\":{\"processors\":4,\"memoryMib\":8192}";
    try testing.expect(std.mem.find(u8, encode(&boot, .{ .revision = 1 }, &buffer), bare) != null);
    _ = boot.facts.onMachine(&.{
        .cpu_count = 65535,
        .memory_mib = 1,
        .card_vendor = 0x8086,
        .card_device = 0xe,
        .link_mbit = 2500,
        .driver = stream.Machine.paddedDriver("e1000\"e"),
        .model = stream.Machine.paddedModel("Maker Desk 7"),
    });
    const full = "\"machine\":{\"processors\":65535,\"memoryMib\":1,\"card\":\"8086:000e\"," ++
        "\"driver\":\"e1000\\\"e\",\"linkMbit\":2500,\"model\":\"Maker Desk 7\"}";
    try testing.expect(std.mem.find(u8, encode(&boot, .{ .revision = 1 }, &buffer), full) != null);
}

test "what was measured of the network lies in the report, without what is unknown" {
    var boot = testBoot();
    var buffer: [size_max]u8 = undefined;
    boot.facts.network = .init(1, &.{}, .{});
    const bare = "\"network\":{\"sizeMax\":548,\"size\":548}";
    try testing.expect(std.mem.find(u8, encode(&boot, .{ .revision = 1 }, &buffer), bare) != null);
    boot.facts.network = .init(1, &.{
        .card = .{ .duplex = .half, .mtu = 9000, .link_mbit = 100, .crc_errors = 3 },
        .is_settled = true,
        .size_max = 8972,
        .size = 1472,
        .size_lost = 4052,
        .size_lost_count = 3,
        .expected = 100,
        .lost = 8,
        .runs = 2,
        .run_packets = 6,
        .run_max = 5,
        .ordered = 90,
        .reordered = 1,
        .reorder_max = 2,
        .rtt_count = 4,
        .rtt_min_us = 90,
        .rtt_p50_us = 100,
        .rtt_p95_us = 200,
    }, .{ .sent = 50, .arrived = 49, .skipped = 2 });
    const full = "\"network\":{\"duplex\":\"half\",\"mtu\":9000,\"linkMbit\":100," ++
        "\"crcErrors\":3," ++
        "\"lostSize\":4052,\"lostSizeCount\":3,\"sizeMax\":8972,\"size\":1472," ++
        "\"toDevice\":{\"packets\":98,\"lost\":6,\"runs\":2,\"runPackets\":6,\"longestRun\":5}," ++
        "\"fromDevice\":{\"packets\":50,\"lost\":1}," ++
        "\"order\":{\"packets\":90,\"late\":1,\"distance\":2}," ++
        "\"rtt\":{\"count\":4,\"minUs\":90,\"p50Us\":100,\"p95Us\":200}}";
    try testing.expect(std.mem.find(u8, encode(&boot, .{ .revision = 1 }, &buffer), full) != null);
}

test "the longest figures of a network fit their part of the report" {
    const most = std.math.maxInt(u32);
    var boot = testBoot();
    boot.facts.network = .init(1, &.{
        .card = .{
            .duplex = .half,
            .mtu = 65535,
            .link_mbit = most,
            .carrier_changes = most,
            .receive_errors = most,
            .crc_errors = most,
            .receive_drops = most,
            .send_errors = most,
            .socket_drops = most,
        },
        .is_settled = true,
        .size_max = 8972,
        .size = 8971,
        .size_lost = 8972,
        .size_lost_count = 65535,
        .expected = most,
        .lost = most,
        .runs = most,
        .run_packets = most,
        .run_max = 65535,
        .ordered = most,
        .reordered = most,
        .reorder_max = 65535,
        .rtt_count = most,
        .rtt_min_us = most,
        .rtt_p50_us = most,
        .rtt_p95_us = most,
    }, .{ .sent = std.math.maxInt(u64), .arrived = 0 });
    var buffer: [size_max]u8 = undefined;
    const text = encode(&boot, .{ .revision = 1 }, &buffer);
    const begin = std.mem.find(u8, text, "\"network\":").?;
    const end = std.mem.find(u8, text[begin..], "}}").?;
    try testing.expect(end + 2 < 1024);
}
