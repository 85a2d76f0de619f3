// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The XML format of a property list, which any program on Apple's systems and every text editor
/// can read.
///
/// Must not be used for values that it cannot represent, see ``XMLCompatibility``.
package enum PropertyListXML {
    /// - Complexity: O(*n*) in the size of the value; the stack grows with its depth.
    package static func encode(_ value: PropertyListValue) -> [UInt8] {
        var text = """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" \
            "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0">

            """
        write(value, indent: "", to: &text)
        text += "</plist>\n"
        return Array(text.utf8)
    }

    private static func write(
        _ value: PropertyListValue, indent: String, to text: inout String
    ) {
        text += indent
        switch value {
        case .string(let string): text += "<string>\(escaped(string.string))</string>"
        case .boolean(let boolean): text += boolean ? "<true/>" : "<false/>"
        case .integer(let integer): text += "<integer>\(integer)</integer>"
        case .unsigned(let unsigned): text += "<integer>\(unsigned)</integer>"
        case .real(let real): text += "<real>\(number(real))</real>"
        case .date(let seconds): text += "<date>\(CalendarTime(seconds: seconds).text)</date>"
        case .data(let data): text += "<data>\(Base64.text(of: data))</data>"
        case .array(let values): write(values, indent: indent, to: &text)
        case .dictionary(let entries): write(entries, indent: indent, to: &text)
        }
        text += "\n"
    }

    private static func write(
        _ values: [PropertyListValue], indent: String, to text: inout String
    ) {
        guard !values.isEmpty else { return text += "<array/>" }
        text += "<array>\n"
        for value in values { write(value, indent: indent + "\t", to: &text) }
        text += "\(indent)</array>"
    }

    private static func write(
        _ entries: [ExactString: PropertyListValue], indent: String, to text: inout String
    ) {
        guard !entries.isEmpty else { return text += "<dict/>" }
        text += "<dict>\n"
        for (key, value) in entries.sorted(by: { $0.key < $1.key }) {
            text += "\(indent)\t<key>\(escaped(key.string))</key>\n"
            write(value, indent: indent + "\t", to: &text)
        }
        text += "\(indent)</dict>"
    }

    /// The shortest text that is read back as the same number.
    private static func number(_ real: Double) -> String {
        if real.isNaN { return "nan" }
        return real.isInfinite ? (real < 0 ? "-infinity" : "+infinity") : "\(real)"
    }

    private static func escaped(_ text: String) -> String {
        guard text.utf8.contains(where: { $0 == 0x26 || $0 == 0x3C || $0 == 0x3E }) else {
            return text
        }
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
