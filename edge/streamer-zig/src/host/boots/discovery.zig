//! Unknown devices that ask to boot, on their way to the report log. While the log waits for the
//! control plane they stay in their table: boots are worth more.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const ReportLog = @import("../files/report_log.zig").ReportLog;

const DiscoveredDevices = core.site.DiscoveredDevices;

pub const Discovery = struct {
    devices: DiscoveredDevices,
    log: *ReportLog,

    /// Reports that wait in the log, of whatever kind.
    const backlog_max = 256;

    /// By DHCP; true when a report was written.
    pub fn noteDhcp(
        discovery: *Discovery,
        now_us: u64,
        policy: *const core.boot.Policy,
        request: *const core.dhcp.Service.BootRequest,
    ) bool {
        const client = &request.client;
        const packet = &request.packet;
        return discovery.note(now_us, policy, &.{
            .mac = client.mac,
            .asked = .dhcp,
            .machine_id = client.machine_id,
            .vendor_class = client.vendor_class,
            .user_class = client.user_class,
            .host_name = .init(packet.options.host_name orelse ""),
            .client_arch = @backingInt(client.arch),
            .ip = client.ip,
            .relay = if (packet.giaddr.isUnicast()) packet.giaddr else null,
        });
    }

    /// By its boot script's address; true when a report was written.
    pub fn noteHttp(
        discovery: *Discovery,
        now_us: u64,
        policy: *const core.boot.Policy,
        mac: base.Mac,
        ip: base.Ip4,
        query: ?core.loader.MediaQuery,
    ) bool {
        return discovery.note(now_us, policy, &.{
            .mac = mac,
            .asked = .http,
            .machine_id = if (query) |known| known.machine_id else null,
            .client_arch = if (query) |known| known.client_arch else null,
            .ip = ip,
        });
    }

    fn note(
        discovery: *Discovery,
        now_us: u64,
        policy: *const core.boot.Policy,
        request: *const DiscoveredDevices.Request,
    ) bool {
        if (!discovery.devices.note(now_us, sys.unixMs(), request)) return false;
        return discovery.report(now_us, policy);
    }

    /// Also once a second: what could not be reported when it came. True when a report was written.
    pub fn report(discovery: *Discovery, now_us: u64, policy: *const core.boot.Policy) bool {
        var has_written = false;
        while (discovery.devices.hasDue(now_us)) {
            if (discovery.log.backlog() >= backlog_max) break;
            const device = discovery.devices.takeDue(now_us).?;
            if (policy.decide(device.said.mac, sys.unixMs()) != .unknown_device) {
                // Somebody has decided in the meantime.
                discovery.devices.forget(device.said.mac);
                continue;
            }
            var buffer: [DiscoveredDevices.report_size_max]u8 = undefined;
            _ = discovery.log.appendDiscovered(DiscoveredDevices.encode(device, &buffer));
            has_written = true;
        }
        return has_written;
    }
};
