// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The form in which nodes tell each other what they committed: short texts of lines, whose fields
/// are separated by tabs.
enum NewsPayload {
    /// PostgreSQL takes less than 8,000 bytes.
    static let bytesMax = 7_900
    private static let linesMax = 1_000
    private static let look = "look"

    /// As few texts as hold all the news. What has no line of its own becomes ``StorageNews/anything``.
    static func encode(_ news: [StorageNews]) -> [String] {
        var texts: [String] = []
        var text = ""
        var lines = 0
        for line in Set(news.map { line($0) }).sorted() {
            if text.utf8.count + 1 + line.utf8.count > bytesMax || lines == linesMax {
                texts.append(text)
                (text, lines) = ("", 0)
            }
            text += text.isEmpty ? line : "\n" + line
            lines += 1
        }
        if !text.isEmpty { texts.append(text) }
        return texts
    }

    /// Decodes news. Text that cannot be read, such as a newer program's, is
    /// ``StorageNews/anything``.
    static func decode(_ text: String) -> [StorageNews] {
        guard text.utf8.count <= bytesMax + 100 else { return [.anything] }
        let lines = text.split(separator: "\n", maxSplits: linesMax)
        guard lines.count <= linesMax else { return [.anything] }
        var news: [StorageNews] = []
        for line in lines {
            guard let item = item(line) else { return [.anything] }
            news.append(item)
        }
        return news
    }

    private static func line(_ news: StorageNews) -> String {
        let fields =
            switch news {
            case .committed(let store, let position):
                ["committed", store.account.string, store.identifier.string, position.cursor.text]
            case .revoked(let device):
                ["revoked", device.account.string, device.id.description]
            case .accountChanged(let account): ["account", account.string]
            case .appsChanged: ["apps"]
            case .anything, .historyWentBack: [look]
            }
        return fields.joined(separator: "\t")
    }

    private static func item(_ line: Substring) -> StorageNews? {
        let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        switch (fields.first, fields.count) {
        case ("committed", 4):
            guard let account = AccountID(fields[1]),
                let identifier = try? StoreIdentifier(fields[2]),
                let position = Cursor(fields[3]).flatMap(Position.init)
            else { return nil }
            return .committed(
                StoreReference(account: account, identifier: identifier), position)
        case ("revoked", 3):
            guard let account = AccountID(fields[1]), let id = DeviceID(fields[2]) else {
                return nil
            }
            return .revoked(DeviceReference(account: account, id: id))
        case ("account", 2): return AccountID(fields[1]).map { .accountChanged($0) }
        case ("apps", 1): return .appsChanged
        case ("look", 1): return .anything
        default: return nil
        }
    }
}
