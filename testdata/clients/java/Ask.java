import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.time.OffsetDateTime;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Properties;
import java.util.Set;

/** Asks a server by JDBC, and checks the answers: address, number of records. */
public final class Ask {
  public static void main(String[] arguments) throws Exception {
    int records = Integer.parseInt(arguments[1]);
    for (String mode : new String[] {"extended", "simple"}) {
      Properties properties = new Properties();
      properties.setProperty("user", "ann");
      properties.setProperty("preferQueryMode", mode);
      // Statements are prepared by the server, and their values are binary, from the second time on.
      properties.setProperty("prepareThreshold", "2");
      try (Connection connection =
          DriverManager.getConnection("jdbc:postgresql://" + arguments[0] + "/logpond", properties)) {
        connection.setReadOnly(true);
        describes(connection.getMetaData());
        binds(connection, records);
        // The driver takes all rows of the simple protocol.
        reads(connection, records, mode.equals("simple") ? records : 10);
        fails(connection);
      }
    }
  }

  static void check(boolean holds, Object found) {
    if (!holds) {
      throw new AssertionError(String.valueOf(found));
    }
  }

  /** Tools for tables list them, and their columns, by these calls. */
  static void describes(DatabaseMetaData data) throws SQLException {
    Set<String> tables = new HashSet<>();
    try (ResultSet found = data.getTables(null, "public", "%", new String[] {"TABLE", "VIEW"})) {
      while (found.next()) {
        tables.add(found.getString("TABLE_NAME"));
      }
    }
    check(tables.contains("logs") && tables.contains("patterns"), tables);
    Map<String, String> types = new HashMap<>();
    try (ResultSet found = data.getColumns(null, "public", "logs", "%")) {
      while (found.next()) {
        types.put(found.getString("COLUMN_NAME"), found.getString("TYPE_NAME"));
      }
    }
    check("timestamptz".equals(types.get("time")) && "int8".equals(types.get("status")), types);
    for (ResultSet found :
        new ResultSet[] {
          data.getSchemas(), data.getCatalogs(), data.getTableTypes(), data.getTypeInfo(),
          data.getPrimaryKeys(null, "public", "logs"), data.getImportedKeys(null, "public", "logs"),
          data.getExportedKeys(null, "public", "logs"),
          data.getIndexInfo(null, "public", "logs", false, true), data.getFunctions(null, "public", "%"),
          data.getProcedures(null, "public", "%"), data.getTablePrivileges(null, "public", "logs"),
        }) {
      while (found.next()) {}
      found.close();
    }
    check(data.getDatabaseProductName().equals("PostgreSQL"), data.getDatabaseProductName());
  }

  static void binds(Connection connection, int records) throws SQLException {
    String text =
        "SELECT count(*), min(time), max(took) FROM logs WHERE status = ? AND time >= ? AND host <> ? AND ok = ?";
    try (PreparedStatement statement = connection.prepareStatement(text)) {
      for (int round = 0; round < 4; round++) {
        statement.setInt(1, 404);
        statement.setTimestamp(2, Timestamp.from(OffsetDateTime.parse("2026-03-02T00:00:00Z").toInstant()));
        statement.setString(3, "it's ?");
        statement.setBoolean(4, false);
        try (ResultSet found = statement.executeQuery()) {
          check(found.next() && found.getLong(1) == records / 4, found.getLong(1));
          OffsetDateTime first = found.getObject(2, OffsetDateTime.class);
          check(first.toInstant().toString().equals("2026-03-02T00:00:02Z"), first);
          check(found.getDouble(3) > 0, found.getDouble(3));
        }
      }
    }
  }

  /** Rows in parts, as tools page through a table. */
  static void reads(Connection connection, int records, int limited) throws SQLException {
    connection.setAutoCommit(false);
    try (Statement statement = connection.createStatement()) {
      statement.setFetchSize(500);
      int rows = 0;
      try (ResultSet found = statement.executeQuery("SELECT * FROM logs ORDER BY time")) {
        check(found.getMetaData().getColumnCount() > 8, found.getMetaData().getColumnCount());
        while (found.next()) {
          rows++;
        }
      }
      check(rows == records, rows);
      statement.setMaxRows(10);
      try (ResultSet found = statement.executeQuery("SELECT message FROM logs")) {
        rows = 0;
        while (found.next()) {
          rows++;
        }
      }
      check(rows == limited, rows);
    }
    connection.commit();
    connection.setAutoCommit(true);
  }

  static void fails(Connection connection) throws SQLException {
    for (String[] row : new String[][] {{"SELECT nothing FROM logs", "42703"}, {"DELETE FROM logs", "25006"}}) {
      try (Statement statement = connection.createStatement()) {
        statement.execute(row[0]);
        throw new AssertionError(row[0]);
      } catch (SQLException error) {
        check(row[1].equals(error.getSQLState()), error);
      }
    }
    try (Statement statement = connection.createStatement()) {
      statement.setQueryTimeout(1);
      statement.execute("SELECT sum(a * b) FROM generate_series(1, 1000000) AS a, generate_series(1, 1000000) AS b");
      throw new AssertionError("a slow statement ended");
    } catch (SQLException error) {
      check("57014".equals(error.getSQLState()), error);
    }
  }
}
